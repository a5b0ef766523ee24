"""T-PPO on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.learner.critics import TokenValue
from longstride.methods import PPO
from longstride.papers.t_ppo.method import ExtendedGAE
from longstride.rollout import Groups, PartialRollouts
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering

WINDOW = 40
"""Sampled tokens of an answer in an iteration: a quarter of what an answer may have."""

RECIPE = puzzles.recipe(
    "t_ppo",
    iterations=120,
    episodes_per_iteration=128,
    group_size=1,
    sampler=PartialRollouts(tokens=WINDOW),
    credit=ExtendedGAE(lam=0.95, whiten=True),
    critic=TokenValue(warmup=4),
    loss=PPO(),
    learner={"batch_samples": 64},
)

ARM = RECIPE.replace(iterations=48, evaluation={"every": 8, "tasks": 480})
_whole = ARM.replace(sampler=Groups(), iterations=12, critic={"warmup": 1}, evaluation={"every": 2})
# no answer of two steps is as long as a window, so an iteration of both is the same
_alike = {"tasks": ALIKE, "iterations": 12, "critic": {"warmup": 1}, "evaluation": {"every": 2}}
_chains = {"tasks": ModularChain(lengths=(2, 6, 12))}

CLAIM = Claim(
    name="t_ppo",
    paper="arXiv 2506.15050, abstract",
    statement="By equal slot-steps, tokens of an iteration times all that are answered at once, answers in pieces end with more success than whole "
    "ones, and by the more the more their lengths differ.",
    recipe=ARM,
    arms={
        "pieces": ARM,
        "whole": _whole,
        "pieces_chains": ARM.replace(**_chains),
        "whole_chains": _whole.replace(**_chains),
        "pieces_alike": ARM.replace(**_alike),
        "whole_alike": _whole.replace(**_alike),
    },
    expected=Ordering(relations=("pieces > whole by 0.03",)),
    dose=("pieces_alike > whole_alike", "pieces_chains > whole_chains", "pieces > whole"),
    seeds=tuple(range(1500, 1512)),
    tuning_seeds=(950, 951),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    cost="slot_steps",
    equal_cost=True,
)
