"""OTC-PO on the embedded sites."""

from longstride.methods import KL, PPO, GroupRelative
from longstride.papers.otc.method import ToolProductivity
from longstride.setups import sites
from longstride.setups.sites import LONG

RECIPE = sites.recipe(
    "otc",
    iterations=12,
    group_size=8,
    reward=ToolProductivity(most=LONG),
    credit=GroupRelative(),
    loss=PPO(kl=KL(coefficient=1e-3)),
)
