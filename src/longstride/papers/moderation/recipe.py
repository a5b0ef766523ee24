"""Posts and policies: RL on few labels, and its claim against fine-tuning on many."""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Moderation
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative
from longstride.papers.moderation.method import AnswersAlone
from longstride.run.imitation import Cloning
from longstride.setups import puzzles
from longstride.stats import Ordering

LABELS = 192
"""Labels that RL is given, each for a group of eight."""

RATES, LABEL_RATES = (5e-5, 1.5e-4, 5e-4, 1.5e-3, 5e-3), (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""That arms are tuned over, of RL and of fine-tuning: two decades around the recipe's."""

RECIPE = puzzles.recipe(
    "moderation",
    credit=GroupRelative(),
    loss=PPO(),
    model="base-rules",
    tasks=Moderation(),
    budget={"turn_tokens": 64},
    test_budget={"turn_tokens": 64},
    iterations=16,
    episodes_per_iteration=LABELS // 16 * 8,
    learner={"lr": 5e-4, "batch_samples": 48},
    evaluation={"every": 16, "tasks": 300},
)


def labels(count: int) -> dict[str, Any]:
    """The change of a recipe to fine-tuning on so many labels, after which it plays as many episodes and learns nothing
    from them."""
    learner = LearnerConfig(lr=1e-3, warmup_steps=10, batch_samples=32, epochs=2)
    return {
        "cloning": Cloning(demonstrations=AnswersAlone(), episodes=count, learner=learner),
        "learner": {"epochs": 0},
    }


CLAIM = Claim(
    name="moderation",
    paper="arXiv 2512.20061, abstract",
    statement="A model that is trained by RL on n labels of a written policy gives the right label more often than one that was "
    "fine-tuned on ten times as many, and the more so the more rules the policy has.",
    recipe=RECIPE,
    arms={
        "rl": RECIPE,
        "labels": RECIPE.replace(**labels(LABELS)),
        "labels_10": RECIPE.replace(**labels(10 * LABELS)),
    },
    expected=Ordering(relations=("rl > labels_10 by 0.05",)),
    # two, four and six rules: the more there are, the more has to be found out from labels alone
    dose=tuple(f"rl > labels_10 in success_{far}" for far in ("easy", "medium", "hard")),
    reported=Ordering(relations=("rl > labels", "labels_10 > labels")),
    seeds=tuple(range(1060, 1068)),
    tuning_seeds=(960, 961),
    grid={
        "rl: learner.lr": RATES,
        **{f"{arm}: cloning.learner.lr": LABEL_RATES for arm in ("labels", "labels_10")},
    },
    cost="env_steps",
)

FINDING = (
    "With 192 labels RL is right about 0.83 of the posts, fine-tuning with 1,920 about 0.73 (+0.10 [0.07, 0.13]) and with 192 about 0.63. "
    "The difference is 0.03, 0.13 and 0.14 for two, four and six rules, and eight seeds do not say that it rises (+0.11 [-0.04, 0.25] from "
    "two to six). RL samples eight thoughts for each label: by as many sampled tokens it is behind by 0.04."
)
