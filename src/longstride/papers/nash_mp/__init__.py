"""Nash-MP: the equilibrium of preferences by mirror prox. Tiapkin et al., 2025, arXiv 2505.19731.

Preferences need not come from a reward, so the aim is a policy that no other is preferred to: the equilibrium of a game
with itself, with a KL term of strength beta to the reference. Mirror descent steps against the policy as it is, and circles
around the equilibrium. Mirror prox first tries the step, and then makes it from the same place against the policy that the
trial led to:

    half = argmin_p  P(policy > p) / beta + KL(p || reference) + KL(p || policy) / eta
    next = the same with P(half > p), and KL to the same policy

Each has a closed form for a table, a mixture in log-probabilities (`proximal`). With eta = 2 beta the divergence from the
equilibrium shrinks by 1 + 2 beta or more in an iteration, which is the paper's rate (1 + 2 beta)^(-N/2) in N queries.

A language model has no closed form. Its steps are least squares on pairs: over all pairs of the policy that sampled, the
loss `INPO(share=eta / (1 + eta), tau=beta / share)` is least at exactly these steps (tested), where the earlier self that
it holds on to is the policy at the beginning of a phase of two iterations. In the first of them that policy is the
sampler; in the second the trial is.

| place | choice | paper | here |
|---|---|---|---|
| problem | preference | a preference model, prompts | `InTurn`: answers of three kinds that beat each other in turn |
| update | both steps | inner policy gradients, a moving target (language models) | `INPO(every=2)` on pairs of siblings |
| update | eta, beta | 2 beta in the analysis | share 0.1: eta 1/9, beta 0.1 |
| test | `Duelled` | win rates by judges | `exploitability` |

Deviations: the loss on pairs takes the place of the paper's policy gradients and moving average. A later version of the
paper (2026) calls its method Nash Prox, self-play by policy gradients, equal to online IPO, in a proximal point loop;
here is the first version's mirror prox. The equations were put together from the paper's abstract and a summary, and
their rate is checked: `test_nash_mp.py` holds it to the bound above.

On your own model, tasks and judge of pairs as in `inpo`; `loss.every=1` is mirror descent, longer phases a proximal point:

    longstride train nash_mp model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=questions.jsonl learner.lr=1e-6 \\
        reward.preference.type=asked_pair reward.preference.judge.type=http_judge \\
        reward.preference.judge.judge.url=http://127.0.0.1:8000/v1 reward.preference.judge.judge.model=judge \\
        budget.turn_tokens=1024 test_budget.turn_tokens=1024 'evaluation.strategies=[{type="direct"}]'

`loss.type=longstride.papers.nash_mp.method:PairedNashMD loss.tau=1` is Nash-MD: its opponent is the mixture of policy and
start.
It keeps two further copies of the weights, the start and the earlier self, so adapters (`learner.lora`) cannot be had.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Accelerating Nash Learning from Human Feedback via Mirror Prox",
    authors="Daniil Tiapkin, Daniele Calandriello, Denis Belomestny, Eric Moulines, Alexey Naumov, Kashif Rasul, Michal "
    "Valko, Pierre Menard",
    year=2025,
    arxiv="2505.19731",
    read="notes",
    topics=("preferences",),
    systems=(91,),
)
