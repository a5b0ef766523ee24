"""POPE: privileged on-policy exploration. Qu et al., 2026, arXiv 2601.18779.

Where no rollout succeeds there is nothing to learn from. There the policy is shown the beginning of a solution and goes
on from it; what it learns from that place on serves it when it comes near there by itself. The solution is never
imitated: it is read, and what the policy says after it is trained.

| place | choice | paper; (c): code of its authors (Qwen3-4B-Instruct) | here |
|---|---|---|---|
| plan | tasks | no success in 128 rollouts of 32k tokens | Countdown of four numbers: 3 % of rollouts succeed |
| plan | `OraclePrefix` | shortest of the beginnings, up to a quarter of the solution, with a success in 8 | up to two of its three steps, a success in 8 |
| plan | guided to unguided | each hard problem in both forms, 1:1 | the same, as long as it is hard |
| roll out | sampling | temperature 0.8, 16,384 tokens (c) | temperature 1, 160 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `GroupRelative`, mixed groups only | GRPO; groups of 4 or 8, r - mean (c) | groups of 8, divided by the deviation |
| update | `PPO` | REINFORCE with a capped ratio, 1e-6, clipped at 0.3 (c) | 5e-4, clipped at 1, steps of 48 episodes: few groups are mixed |

Deviations: the beginning stands on the policy's side, as if it had sampled it, and not in the prompt with the instruction
to study it and to go on: a model of half a million parameters follows no instructions. So a guided episode stands
exactly where an unguided one would that had begun like that, which is the overlap that the paper explains its transfer
by; and so a solution has to be spelled as the policy spells its own. A task is hard when a group of 8 has no success,
which says less than 128 rollouts. Beginnings are looked for in every iteration, as tasks are drawn afresh, by the
policy as it is, and where none leads to a success the task teaches nothing; the paper looks once, by the base model,
and then takes the quarter. A task that was solved without guidance is not guided. A solution has three steps here, and
each is a choice, so the share that is shown is larger.

How the paper looks for beginnings is from notes on it. (c) is the default configuration for POPE in ars22/pipeline-rl,
of some months before the paper; the settings of the paper itself could not be checked.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="POPE: Learning to Reason on Hard Problems via Privileged On-Policy Exploration",
    authors="Yuxiao Qu, Amrith Setlur, Virginia Smith, Ruslan Salakhutdinov, Aviral Kumar",
    year=2026,
    arxiv="2601.18779",
    read="notes",
    topics=("reasoning",),
    systems=(15,),
)
