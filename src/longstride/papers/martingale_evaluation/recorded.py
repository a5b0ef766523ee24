"""The value of a policy from walks that somebody recorded, without an environment: `tasks.data=mine.hdf5`.

One walk in ten is held out, and values are compared with its returns (`value_error`). `agent.levels.0.critic.lam` is 0 for CTD(0), 1 for
the martingale loss, between them for CTD(lambda); `agent.levels.0.critic.residual=true` is the mean square of the temporal difference, to be
held against them (`longstride compare`). `agent.levels.0.data.discount` is per step: exp(-rate dt).
"""

from longstride.control import ControlEvaluation, ControlRecipe, TrainingPhase
from longstride.curriculum import Fixed
from longstride.papers.martingale_evaluation.method import RecordedWalks
from longstride.papers.martingale_evaluation.recipe import agent

RECIPE = ControlRecipe(
    name="martingale_evaluation/recorded",
    tasks=RecordedWalks(data="mine.hdf5"),
    agent=agent(discount=0.99),
    phases=(TrainingPhase(iterations=20, updates=500),),
    horizon=Fixed(limit=100_000),
    test_horizon=Fixed(limit=100_000),
    evaluation=ControlEvaluation(episodes=20, every=5),
)
