"""PPO: proximal policy optimisation. Schulman et al., 2017, arXiv 1707.06347.

A clipped ratio to the policy that sampled, advantages by generalised advantage estimation, several passes over what was
collected.

| place | choice | paper, and as language models are trained with it | here |
|---|---|---|---|
| credit | `GAE` | discount 0.99, lam 0.95 (table 3); for language models both 1 (verl) | discount 1, lam 0.95, over turns |
| credit | values | a learned critic, of each token in language models | a learned critic of each turn |
| credit | whitening | of a batch's advantages, in common implementations | the same |
| update | `PPO`, `Mean` over tokens | ratio clipped at 0.2 | the same, and at 3 where A < 0 (dual clip, arXiv 1912.09729) |
| update | passes | 10 (table 3) | two |
| the rest | | | as in `grpo` |

Deviations: the critic is of turns (see `vl_dac`): on puzzles of one turn it is a baseline that is learned across tasks,
where `grpo` and `rloo` know their group's mean, and lam does nothing; on the embedded sites it distinguishes turns. It
has an optimiser of its own, learns alone in the first iteration, and its loss is not clipped. No entropy bonus. Model,
tasks and rate are those of `grpo`. `ppo/control` is the paper's own field: networks in any environment of Gymnasium.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Proximal Policy Optimization Algorithms",
    authors="John Schulman, Filip Wolski, Prafulla Dhariwal, Alec Radford, Oleg Klimov",
    year=2017,
    arxiv="1707.06347",
    read="notes",
    topics=("credit", "values"),
)
