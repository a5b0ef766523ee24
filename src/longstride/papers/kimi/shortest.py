"""Long to short by rejection sampling: of eight answers to a task the shortest right one is imitated. It begins from a
policy that thinks for long: `model=RUN/checkpoints/000040`."""

from longstride.methods import Mean, Reinforce
from longstride.papers.kimi.method import ShortestRight
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "kimi/shortest",
    iterations=10,
    model="base-thoughts",
    credit=ShortestRight(),
    loss=Reinforce(aggregation=Mean(over="token")),
    learner={"batch_samples": 32},
    evaluation={"every": 5},
)
