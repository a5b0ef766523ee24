"""A best response to a policy, by training one: how far its reward is above 1/2 says how far that policy can be beaten.
The policy plays first, then it is played against:

    longstride train inpo model=RUN/checkpoints/000020 learner.epochs=0 --out opponent
    longstride train inpo/best_response reward.run=opponent
"""

from pathlib import Path

from longstride.methods import PPO, GroupRelative, Mean
from longstride.papers.inpo import recipe
from longstride.papers.inpo.method import Against
from longstride.setups.duels import IN_TURN

RECIPE = recipe.RECIPE.replace(
    name="inpo/best_response",
    reward=Against(run=Path("opponent"), preference=IN_TURN),
    credit=GroupRelative(normalize="none"),
    loss=PPO(aggregation=Mean(over="token")),
)
