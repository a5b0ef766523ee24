"""INPO: self-play on general preferences by one squared loss. Zhang et al., 2024, arXiv 2407.00617.

Online mirror descent against the policy itself finds the equilibrium of preferences with a hold of strength tau on the
reference, but its step needs the chance of every answer to win. INPO gets the same step from pairs that the policy
sampled and a preference labelled, y_w over y_l. It minimises

    (h - 1 / (2 eta))^2,   h = log pi(y_w) / pi(y_l) - (tau / eta) log ref(y_w) / ref(y_l)
                                - (1 - tau / eta) log pi_t(y_w) / pi_t(y_l)

whose minimum over all pairs of pi_t is pi_t^(1 - tau / eta) ref^(tau / eta) exp(P(y > pi_t) / eta), normalised: the step
of mirror descent. h is the margin of `methods.preferences.IPO` against a reference that moves, the geometric mixture of ref and pi_t,
and the loss is `INPO(tau=eta, share=tau / eta)`. Iterated DPO has the same loop, and a loss that takes preferences for
those of a reward.

| place | choice | paper (Llama-3-8B) | here |
|---|---|---|---|
| problem | preference | prompts, a preference model | `InTurn`: answers of three kinds that beat each other in turn |
| roll out | pairs of pi_t | best and worst of 8 answers | siblings two by two, one label each, drawn by its chance |
| update | `INPO` | tau / eta = 1/3 | eta = 1, tau = 0.1 |
| update | steps | 3 iterations of an epoch each | 20 of two passes |
| test | `Duelled` | win rates by judges | `exploitability`: by how much the best response to 16 answers wins |

Deviations: constants of the paper are from a summary. Pairs are as the paper's analysis draws them
(`credit.which=extremes` is best against worst). A best response is looked for among the kinds of answers (`Duelled`),
among policies, such as earlier selves (`run.tournament`), and by training one (`inpo/best_response`). A policy is trained
against its own earlier self in `inpo/earlier_selves`, by policy gradients.

On your own model, tasks and judge of pairs:

    longstride train inpo model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=questions.jsonl learner.lr=1e-6 \\
        credit.which=extremes reward.preference.type=asked_pair reward.preference.judge.type=http_judge \\
        reward.preference.judge.judge.url=http://127.0.0.1:8000/v1 reward.preference.judge.judge.model=judge \\
        budget.turn_tokens=1024 test_budget.turn_tokens=1024 'evaluation.strategies=[{type="direct"}]'

Left out, the last setting measures `exploitability` by the circle of kinds, which says nothing of other preferences: a
`duelled` with `preference` asks a judge at the test too.

Earlier selves and other runs are played against one another in Python:

    from longstride import papers, rewards
    from longstride.run.tournament import tournament

    found = tournament(papers.load("inpo"), ["base-puzzles", "runs/inpo-1", "runs/nash_mp-1"], rewards.InTurn())
    print(found.exploitability)

`loss.share` holds on to the start, `loss.tau` says how far a step goes (0.0075 for answers of hundreds of tokens).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Iterative Nash Policy Optimization: Aligning LLMs with General Preferences via No-Regret Learning",
    authors="Yuheng Zhang, Dian Yu, Baolin Peng, Linfeng Song, Ye Tian, Mingyue Huo, Nan Jiang, Haitao Mi, Dong Yu",
    year=2024,
    arxiv="2407.00617",
    read="notes",
    topics=("preferences",),
    systems=(88,),
)
