"""Long to short by preferences: of eight answers to a task the shortest right one is preferred to wrong ones and to right
ones that are half as long again, under DPO. It begins from a policy that thinks for long: `model=RUN/checkpoints/000040`."""

from longstride.methods import DPO
from longstride.papers.kimi.method import ShorterPairs
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "kimi/shorter_pairs",
    iterations=10,
    model="base-thoughts",
    credit=ShorterPairs(),
    loss=DPO(beta=0.1),
    learner={"epochs": 1, "batch_samples": 128},
    evaluation={"every": 5},
)
