"""CompactionRL on trails with codes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.dial import DialCodes
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import TurnValue
from longstride.methods import PPO, Mean
from longstride.papers.compaction_rl.method import AcrossSegments, Compacted, Compacting
from longstride.run.imitation import Cloning
from longstride.setups import dial
from longstride.stats import Ordering

RECIPE = dial.recipe(
    "compaction_rl",
    iterations=6,
    tasks=Compacting(
        tasks=DialCodes(distances=(2, 9), test_distances=(3, 6, 16), codes=2), turns=4, request="read code"
    ),
    budget={"turns": 32, "turn_tokens": 16},
    test_budget={"turns": 64, "turn_tokens": 16},
    context=Compacted(keep=0),
    cloning=Cloning(
        episodes=1400,
        learner=LearnerConfig(lr=1e-3, batch_samples=64, warmup_steps=5, dtype="float32", threads="auto"),
    ),
    credit=AcrossSegments(),
    critic=TurnValue(warmup=1),
    loss=PPO(aggregation=Mean(over="token")),
    learner={"lr": 1e-4, "batch_samples": 64},
    evaluation={"every": 3, "tasks": 120},
)

CLAIM = Claim(
    name="compaction_rl",
    paper="arXiv 2607.05378, abstract",
    statement="By equal environment steps, a policy whose summaries are trained with its actions ends with more success than one whose actions "
    "alone are trained, the more so the more summaries an episode has, and no more where it has none.",
    recipe=RECIPE,
    arms={"trained": RECIPE, "untrained": RECIPE.replace(credit={"summaries": False})},
    expected=Ordering(relations=("trained > untrained by 0.02",)),
    dose=tuple(f"trained > untrained in success_{far}" for far in ("easy", "medium", "hard")),
    seeds=tuple(range(700, 708)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (2.5e-5, 5e-5, 1e-4, 2e-4, 4e-4)},
    tuning={"iterations": 3, "evaluation.every": 3},
    cost="env_steps",
    equal_cost=True,
)
