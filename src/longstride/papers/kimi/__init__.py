"""Kimi k1.5: mirror descent on the answers of the policy before. Kimi Team, 2025, arXiv 2501.12599.

The best policy near the last one, pi_i, is pi_i exp(r / tau) / Z. A policy that is it has r - tau log Z = tau log(pi /
pi_i) for every answer, so the squared difference is minimised on samples of pi_i, with the mean reward in place of tau
log Z. No ratio is clipped: the square holds the policy near pi_i however many steps are taken on one batch.

| place | choice | paper (section 2.3 to 2.6) | here |
|---|---|---|---|
| plan | `Prioritised` | easy tasks first, then in proportion to 1 - success | in proportion to 1 - success, by difficulty |
| plan | groups of one task | k answers a prompt | 8 answers, 32 puzzles |
| roll out | `PartialRollouts`, `WholeGroups` | a limit of tokens an iteration; what is cut goes on in a later one | the same, in `kimi/partial` |
| score | `LengthReward` | verifier, and a reward for short answers after a warm-up | the same, weight 0.2 after 20 of 40 iterations |
| credit | `GroupRelative` | r - mean | the same |
| update | `MirrorDescent` | grad log pi (r - mean) - tau / 2 grad (log pi / pi_i)^2 | the same, tau 0.5 |
| update | steps | many on one batch; the optimiser is reset every iteration | 4 on the whole batch; its moments are kept |
| after | long to short | shortest of 8 imitated; pairs under DPO; merged weights | `kimi/shortest`, `kimi/shorter_pairs`, `models.merge` |

Deviations: tau and the weight of the length are not in the paper. Tasks are made anew here, so success is that of all
tasks of a kind and difficulty; `curriculum.by=task` is for finite sets. What a cut answer sampled in earlier iterations
is read and not trained. Left out: images, the detection of repetitions, reward models of code and mathematics, RL from
long to short with a smaller limit (`kimi` with a small `budget.turn_tokens` is that). With mean(r) for tau log Z the fixed
point is not pi_i exp(r / tau): where the mean is small beside it, probabilities move less (measured in the tests: see
arXiv 2602.05933, which calls it a mix of KL and chi-squared).

On your own model and tasks, then from long to short, by pairs or by weights:

    longstride train kimi model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl curriculum.by=task \\
        learner.lr=1e-6 budget.turn_tokens=1024 test_budget.turn_tokens=1024
    longstride train kimi/shorter_pairs model=runs/kimi-1/checkpoints/000040 tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 budget.turn_tokens=1024 test_budget.turn_tokens=1024
    python -c "from longstride.models.merge import merge_folders as m; m('runs/kimi-1/checkpoints/000040', 'Qwen/Qwen3-0.6B', 'merged')"

`sampler.tokens` and `replay` of `kimi/partial` put answers in pieces into any recipe of single turns; `replay.reward`
compares the lengths of answers that ended in different iterations.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Kimi k1.5: Scaling Reinforcement Learning with LLMs",
    authors="Kimi Team",
    year=2025,
    arxiv="2501.12599",
    read="notes",
    topics=("reasoning", "credit"),
    systems=(67,),
)
