"""Lite PPO on puzzles of unequal difficulty: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import PPO, GroupRelative, Mean
from longstride.setups import puzzles
from longstride.setups.puzzles import SPREAD
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "lite_ppo", credit=GroupRelative(normalize="batch_std"), loss=PPO(aggregation=Mean(over="token"))
)

ARM = puzzles.arm(RECIPE).replace(evaluation={"start": False})
GRPO = {"credit": GroupRelative(normalize="std"), "loss": PPO(aggregation=Mean(over="sequence"))}
_tasks = {of: {"tasks": ModularChain(lengths=lengths)} for of, lengths in SPREAD.items()}

CLAIM = Claim(
    name="lite_ppo",
    paper="arXiv 2508.08221, section 5",
    statement="The deviation of the batch and a mean over tokens end with more success than GRPO's deviation of the group and "
    "mean over answers, each at its own best rate, and by the more the more unequal the puzzles' difficulty is.",
    recipe=ARM,
    arms={f"{of}_lite_ppo": ARM.replace(**tasks) for of, tasks in _tasks.items()}
    | {f"{of}_grpo": ARM.replace(**tasks, **GRPO) for of, tasks in _tasks.items()},
    expected=Ordering(relations=("wide_lite_ppo > wide_grpo by 0.02",)),
    dose=tuple(f"{of}_lite_ppo > {of}_grpo" for of in SPREAD),
    seeds=tuple(range(1200, 1220)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 8, "evaluation.tasks": 400},
    cost="env_steps",
)

FINDING = (
    "GRPO's deviation and mean end as high or higher, each at its own best rate: .91 and .88 where difficulty is most unequal, level where "
    "it is less so (.68 both) or not at all (.97 both), 20 seeds."
)
