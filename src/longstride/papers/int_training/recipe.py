"""Intervention training on chains: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, Reinforce
from longstride.papers.int_training.method import Interventions, Spliced
from longstride.rollout import Groups
from longstride.run.imitation import Cloning
from longstride.run.recipe import ObjectivePhase
from longstride.setups import puzzles
from longstride.stats import Ordering

BEFORE = 3
"""Iterations of interventions, before RL."""

RECIPE = puzzles.recipe(
    "int_training",
    episodes_per_iteration=128,
    tasks=ModularChain(lengths=(3, 4, 5)),
    sampler=Interventions(iterations=BEFORE),
    credit=Spliced(),
    loss=Reinforce(aggregation=Mean(over="token")),
    objectives=(ObjectivePhase(after=BEFORE, credit=GroupRelative(), loss=PPO()),),
    learner={"batch_samples": 64},
)

ARM = RECIPE.replace(iterations=5, evaluation={"every": 1, "tasks": 300})
_rl = {"sampler": Groups(), "credit": GroupRelative(), "loss": PPO(), "objectives": (), "iterations": 8}

CLAIM = Claim(
    name="int_training",
    paper="arXiv 2601.14209, abstract",
    statement="By equal sampled tokens, RL that begins after interventions at first errors, the search for them counted, ends with more success "
    "than RL alone, and by the more the more steps an answer has.",
    recipe=ARM,
    arms={
        "int": ARM,
        "rl": ARM.replace(**_rl),
        "no_prefix": ARM.replace(credit={"prefix": False}),
        "references": ARM.replace(
            **_rl, cloning=Cloning(episodes=100, learner=LearnerConfig(lr=3e-4, batch_samples=64))
        ),
    },
    expected=Ordering(relations=("int > rl by 0.03",)),
    dose=tuple(f"int > rl in success_{steps}" for steps in ("easy", "medium", "hard")),
    reported=Ordering(relations=("int > no_prefix", "int > references")),
    seeds=tuple(range(1700, 1716)),
    tuning_seeds=(970, 971),
    grid={"learner.lr": (4e-5, 1.2e-4, 4e-4, 1.2e-3, 4e-3)},
    cost="sampled_tokens",
    equal_cost=True,
)

FINDING = (
    "It stays open whether interventions help: by as many sampled tokens as five iterations with them take, the search included, they end 0.00 "
    "[-0.03, 0.03] from RL alone, and no further where answers have more steps. Neither the cloned prefix nor cloned reference solutions change that."
)
