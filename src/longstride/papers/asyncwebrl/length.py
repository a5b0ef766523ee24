"""The divisor of `asyncwebrl`, where what it does is computed: how long episodes become in which nothing can be won.

With T_i turns in episode i, b the mean success S and no deviation, dividing by T_i is gradient ascent on

    E[r / T] - b E[1 / T]    at b = S, instead of    E[r] / k

so failures are pushed, whatever they did, towards many turns. It is a bias: a turn of an episode that is lost already
changes no success, and with a constant its expected gradient is exactly 0. The tests have it for all groups of two.

| place | choice | `asyncwebrl` | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes | 4 groups of 8 |
| credit | `GroupRelative` | (r - mean) / deviation, divided by k = 8, the easy horizon | the same, k = 5, the turns of a success |
| update | `PPO` | clip 0.2, dual 3; mean over tokens, 3 epochs of 2 minibatches | the same clips; mean over episodes, one step |

With that k the tokens of successes weigh the same in both arms. At the start successes have 5 turns and failures 10 on
average; the paper counts 5.1 and 12.5. Deviations: an episode is a walk through `Forks`; samples are those of the policy
itself. A mean over tokens, which `asyncwebrl` takes, divides by the turns of the whole batch: a batch of long failures
weighs less, so some of the bias is back; `token_mean` has it, at its own best step.
"""

from functools import cache

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Share
from longstride.curriculum import Fixed
from longstride.exact.answers import Chance
from longstride.exact.learner import recipe
from longstride.exact.walks import Walk, Walked
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.methods import PPO, Constant, GroupRelative, Mean, MixedGroups
from longstride.stats import Ordering


class Forks(Walk):
    """So many forks in a row, right and wrong. After the last right turn the task is done. A wrong one leads astray, and
    so may a right one before the last; from there nothing leads back: the agent wanders on, or gives up."""

    forks: Count = 5
    """Turns of a success."""
    tasks: Count = 4
    """Alike."""
    right: Chance = 0.7
    """Chance of the start to turn right."""
    strays: Share = 0.1
    """Chance of a right turn to lead astray all the same, so that failures remain."""
    quits: Chance = 0.12
    """Chance of the start to give up a turn, once it is astray."""
    ends: bool = True
    """Whether giving up ends the episode. Where it does not, failures have as many turns as the horizon."""

    @property
    def world(self) -> tuple[EnumerableMDP, np.ndarray]:
        return _forks(self.forks, self.tasks, self.strays, self.ends, self.horizon)

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        first = np.array([self.right] * self.forks + [1 - self.quits])
        return np.log(np.stack([first, 1 - first], -1))[:, None]


@cache
def _forks(forks: int, tasks: int, strays: float, ends: bool, horizon: int) -> tuple[EnumerableMDP, np.ndarray]:
    """State task * forks + fork; the last but one is astray, the last the end. The policy sees the fork."""
    way, astray, end = np.arange(tasks * forks), tasks * forks, tasks * forks + 1
    fork, last = way % forks, way % forks == forks - 1
    ways, rewards, start = np.zeros((end + 1, 2, end + 1)), np.zeros((end + 1, 2)), np.zeros(end + 1)
    ways[way, 0, np.where(last, end, way + 1)] = np.where(last, 1, 1 - strays)
    ways[way[~last], 0, astray] = strays
    ways[way, 1, astray] = ways[astray, 0, astray] = ways[astray, 1, end if ends else astray] = ways[end, :, end] = 1
    rewards[way[last], 0], start[way[fork == 0]] = 1, 1 / tasks
    seen = np.append(fork, [forks, forks])
    return EnumerableMDP(ways, rewards, start, np.arange(end + 1) == end, horizon), seen


FORKS, TURNS = 5, 24

RECIPE = recipe(
    "asyncwebrl/length",
    Forks(forks=FORKS, horizon=TURNS),
    Walked(
        turns=Fixed(limit=TURNS),
        replay=MixedGroups(),
        credit=GroupRelative(length_divisor=float(FORKS)),
        loss=PPO(dual_clip=3.0, aggregation=Constant(per="episode")),
        group=8,
        rate=2.0,
    ),
    iterations=60,
)

_by_turns = {"credit": {"length_divisor": "turns"}}
_arm = RECIPE.replace(every=RECIPE.iterations)
_shorter = {
    f"within_{turns}": _arm.replace(problem={"horizon": turns}, method={"turns": Fixed(limit=turns)})
    for turns in (FORKS + 1, 2 * FORKS)
}

CLAIM = Claim(
    name="asyncwebrl/length",
    paper="arXiv 2606.05597, abstract",
    statement="A constant in place of the episode's own length as divisor of advantages makes episodes shorter, each at the "
    "step with which it succeeds most, in most of the worlds that are drawn.",
    recipe=_arm,
    arms={
        "constant": _arm,
        "by_turns": _arm.replace(method=_by_turns),
        "token_mean": _arm.replace(method={"loss": {"aggregation": Mean(over="token")}}),
        **{f"{within}_constant": arm for within, arm in _shorter.items()},
        **{f"{within}_by_turns": arm.replace(method=_by_turns) for within, arm in _shorter.items()},
    },
    measure="length",
    expected=Ordering(relations=("by_turns > constant by 1",)),
    # the fewer turns there are beyond those of a success, the less the divisors differ
    dose=(*(f"{within}_by_turns > {within}_constant" for within in _shorter), "by_turns > constant"),
    reported=Ordering(relations=("constant > by_turns in success", "token_mean > constant")),
    worlds={
        "problem.right": Between(low=0.5, high=0.9),
        "problem.strays": Between(low=0.03, high=0.3, log=True),
        "problem.quits": Between(low=0.04, high=0.36, log=True),
    },
    grid={"method.rate": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)},
    tuned_by="success",
    cost="samples",
    scale=(1.0, 24.0),
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1030)),
)

FINDING = (
    "It stays open: divided by their own length episodes end 4.5 turns longer [2.6, 6.5] (11.1 and 6.6) at the same success (0.659), by "
    "more than a turn in 57 % of the worlds [39, 73], and in 13 % they are shorter. At the steps with which both succeed most "
    "what a lost episode does is decided early and by chance. The bias is there where failures remain: the oftener a right turn "
    "leads astray, the larger it is, and it is gone with the turns beyond those of a success (0.2 with one of them). A mean over all "
    "tokens lies between the two, 1.0 [-0.3, 2.5] turns above the constant."
)
