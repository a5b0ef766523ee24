"""PPO: proximal policy optimisation. Schulman et al., 2017, arXiv 1707.06347.

A clipped ratio to the policy that sampled, advantages by generalised advantage estimation, several passes over what was
collected.

| place | choice | paper, and as language models are trained with it | here |
|---|---|---|---|
| credit | `GAE` | discount 0.99, lam 0.95 (table 3); for language models both 1 (verl) | discount 1, lam 0.95, over turns |
| credit | values | a learned critic | the mean return of the group's other episodes |
| credit | whitening | of a batch's advantages, in common implementations | the same |
| update | `PPO`, `Mean` over tokens | ratio clipped at 0.2 | the same, and at 3 where A < 0 (dual clip, arXiv 1912.09729) |
| update | passes | 10 (table 3) | two |
| the rest | | | as in `grpo` |

Deviations: there is no learned critic yet; the value of a turn is the mean return to go of the group's other episodes
that came so far. On puzzles of one turn, where lam does nothing, that is RLOO's baseline, whitened; on the embedded
sites it tells turns apart. No entropy bonus, no value loss. Model, tasks and rate are those of `grpo`.
"""

from longstride.algorithms import GAE, PPO
from longstride.recipes import grpo

RECIPE = grpo.RECIPE.model_copy(
    update={"name": "ppo", "credit": GAE(values="group", lam=0.95, whiten=True), "loss": PPO(dual=3.0)}
)
