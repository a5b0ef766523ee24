"""SHARSA at its own size: `puzzle-4x5-play` of OGBench (arXiv 2506.04168).

| setting | published | source: seohongpark/horizon-reduction |
|---|---|---|
| networks | 4 layers of 1,024, GELU, layer normalisation | `agents/sharsa.py` |
| values | n = 25, discount 0.999, cross-entropy, the least of two, tau 0.005 | the same |
| goals of values | 0.2 current, 0.5 future (uniform), 0.3 random | the same |
| goals of policies | 0.5 future (geometric), 0.5 random | the same |
| policies | flows of 10 steps, the best of 32 subgoals | the same |
| batch, rate | 1,024, Adam 3e-4 | the same |
| updates | 5M, tests every 250,000 with 15 episodes a goal | `main.py` |

Its data, 1 billion transitions, are not here: walks in the maze stand for them.
"""

from longstride.control import ControlAgent, Relabelled, TrainingPhase
from longstride.models.mlp import Trunk
from longstride.papers.sharsa import recipe

DISCOUNT = 0.999
FAR = Relabelled(future=0.5, geometric=DISCOUNT)
"""Goals that policies are learned for."""


def _agent() -> ControlAgent:
    subgoals, actions = recipe.sharsa(Trunk(width=1024, depth=4)).levels
    data = subgoals.data.replace(discount=DISCOUNT)
    return ControlAgent(levels=(subgoals.replace(data=data, policy_goals=FAR), actions), batch=1024)


RECIPE = recipe.RECIPE.replace(
    name="sharsa/published",
    agent=_agent(),
    phases=(TrainingPhase(iterations=20, updates=250_000),),
    evaluation={"episodes": 15, "every": 1},
)
