"""J1 on pairs of solutions that a policy wrote: RL on whether the verdict is right; waits that are forced at test time.

With your own: `longstride train j1 model=MODEL tasks.path=solutions.jsonl`, see docs/guides/judge.md; then
`--strategy think_on end=Verdict: word=wait times=2`, where `word` is what the model goes on after.
"""

from longstride.claims.claim import Claim
from longstride.envs.judgements import Judgements
from longstride.envs.questions import VERDICT
from longstride.envs.text import STEP_END
from longstride.methods import KL, PPO, FilteredBC, GroupRelative, Mean, Reinforce
from longstride.papers.j1.method import BothOrders
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.think_on import ThinkOn

WAITS = ThinkOn(times=1, word=STEP_END, end=VERDICT)
RECIPE = puzzles.recipe(
    "j1",
    credit=GroupRelative(baseline="batch", normalize="batch_std"),
    loss=PPO(kl=KL(coefficient=0.01), aggregation=Mean(over="token")),
    iterations=16,
    group_size=1,
    model="base-judge",
    tasks=Judgements(asks="better"),
    learner={"lr": 1e-3},
    evaluation={"tasks": 200, "every": 8, "strategies": (Direct(), WAITS, BothOrders())},
)

ARM = RECIPE.replace(
    iterations=8,
    episodes_per_iteration=128,
    learner={"batch_samples": 64},
    evaluation={"every": 8, "tasks": 300, "strategies": (WAITS, Direct(), BothOrders())},
)
TUNED = {"credit": FilteredBC(), "loss": Reinforce()}
SHORT = {"tasks": {"puzzles": {"type": "modular_chain", "lengths": (1, 1, 1)}}, "evaluation": {"tasks": 80}}
"""One step a chain: nothing is left to look at after the first look. There are fewer different ones."""

CLAIM = Claim(
    name="j1",
    paper="arXiv 2505.11875, abstract",
    statement="After RL on its verdicts a judge is right about more pairs, with waits forced, than after fine-tuning on as "
    "many of its own right judgements.",
    recipe=ARM,
    arms={
        "rl": ARM,
        "tuned": ARM.replace(**TUNED),
        "short_rl": ARM.replace(**SHORT),
        "short_tuned": ARM.replace(**SHORT, **TUNED),
    },
    expected=Ordering(relations=("rl > tuned by 0.03",)),
    control=Ordering(relations=("short_rl > short_tuned by 0.03",)),
    reported=Ordering(relations=("rl@direct > tuned@direct", "rl > rl@direct", "tuned > tuned@direct")),
    seeds=tuple(range(300, 312)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 8e-3)},
    tuning={"iterations": 4},
    cost="env_steps",
)

FINDING = (
    "A forced wait costs the fine-tuned judge .06 (.81 without, .76 with it). With the wait RL is best at the smallest of seven rates, "
    "3e-5, at .72. On the two tuning seeds RL at 1e-3 came to .80 without a wait after four iterations."
)
