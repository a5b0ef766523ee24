"""Implicit Q-learning on the maze whose cells look alike: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.methods import AdvantageWeighted, FilteredBC, Reinforce
from longstride.papers.lmrl_gym.method import ExpectileQ, ReturnQ
from longstride.setups import games
from longstride.stats import Ordering

RECIPE = games.recipe(
    "lmrl_gym",
    credit=AdvantageWeighted(),
    loss=Reinforce(),
    critic=ExpectileQ(encoder="base-trials", frozen=False, batch_episodes=16, steps=200),
)

# a part of the walks arrives, by short ways: its updates are about as many as the others' in smaller batches
_filtered = {"credit": FilteredBC(), "critic": None, "learner": {"batch_samples": 64}}
_seen = {"tasks": {"fully_observed": True}}

CLAIM = Claim(
    name="lmrl_gym",
    paper="arXiv 2311.18232, section 5 and table 2",
    statement="From the same stored walks, implicit Q-learning reaches the goal of a maze whose cells look alike more often than cloning the walks "
    "that did.",
    recipe=RECIPE,
    arms={
        "ilql": RECIPE,
        "filtered": RECIPE.replace(**_filtered),
        "returns": RECIPE.replace(critic=ReturnQ(encoder="base-trials", frozen=False, batch_episodes=16, steps=200)),
        "seen_ilql": RECIPE.replace(**_seen),
        "seen_filtered": RECIPE.replace(**_filtered).replace(**_seen),
    },
    expected=Ordering(relations=("ilql > filtered by 0.03",)),
    control=Ordering(relations=("seen_ilql > seen_filtered by 0.03",)),  # the twin in which each cell says where it is
    reported=Ordering(relations=("ilql > returns", "returns > filtered")),
    worlds={"tasks.maze_seed": Between(low=0, high=9999)},
    seeds=tuple(range(2200, 2212)),
    tuning_seeds=(961, 962),
    grid={"learner.lr": (4e-5, 1.3e-4, 4e-4, 1.3e-3, 4e-3)},
    cost="env_steps",
)
