"""The horizons of `webgym` on walks whose success is computed, at equal numbers of sampled turns.

Imitating successes makes a policy more like its own successes, and no more direct than they are. Under a long horizon a
success may take any number of detours, and they are imitated with the rest. Under a short one it takes few.

| place | choice | `webgym` | here |
|---|---|---|---|
| plan | `PerDifficulty` | 6, 10, 16 turns; tests at 24 | 6, 12, 24; tests at 40 |
| plan | tasks, uniform | difficulty is the number of facts | of useful turns: 2, 6 and 14; 16 episodes each |
| credit | `RecentSuccesses` | 256 of the last 4 iterations | all of this iteration |
| credit | `FilteredBC(drop_unchanged=True)` | turns after which the page looks the same | a detour changes the page, so none is left out |
| update | passes, rate | 2 epochs, 5e-4 | one step, 16 logits |

Deviations: an episode is a walk (`exact.walks.SearchWalk`), a detour is a wasted turn; every arm stops learning when it has
sampled 30,000 turns. Episodes under a short horizon are shorter, so there are more updates of them: `long_twice` has
twice the turns. On seeds 0 to 3 the difference falls with the rate, from 0.15 at 2 to 0.01 at 64, where both are above
0.97 when they stop. Seeds 100 to 139 gave the same verdicts before (0.068, 0.062 to 0.075), and a larger file.
"""

from dataclasses import replace

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.task import difficulty_of
from longstride.core.trajectory import Trajectory
from longstride.curriculum import Fixed
from longstride.curriculum.schedules import PerDifficulty
from longstride.exact.experiment import State
from longstride.exact.learner import recipe
from longstride.exact.walks import SearchWalk, Walked
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.methods import Reinforce
from longstride.methods.cloning import FilteredBC
from longstride.stats import Ordering


class Strict(SearchWalk):
    """A `SearchWalk` in which what leads no further ends the episode, so that no success takes a detour."""

    @property
    def world(self) -> tuple[EnumerableMDP, np.ndarray]:
        mdp, seen = super().world
        every, ways = np.arange(len(seen)), mdp.transitions.copy()
        ways[ways[every, :, every] == 1] = np.eye(len(seen))[-1]
        return replace(mdp, transitions=ways), seen


class Imitated(Walked[SearchWalk]):
    """`Walked` under the horizon of each task's own difficulty, by WebGym's rule for the number of useful turns."""

    def collect(
        self, problem: SearchWalk, logits: np.ndarray, state: State, rng: np.random.Generator
    ) -> list[Trajectory]:
        played, iteration = [], int(state["iteration"]) + 1
        for start, depth in zip(np.flatnonzero(problem.world[0].start).tolist(), problem.depths, strict=True):
            turns = self.turns.at(iteration, difficulty_of(depth))
            played += problem.play(logits, [start] * self.group, turns, rng)
        state["sampled"] = state["sampled"] + sum(t.length for t in played)
        return played


LONG, TURNS = 40, 30_000


def by_difficulty(easy: int, medium: int, hard: int) -> PerDifficulty:
    """Constant horizons."""
    return PerDifficulty(easy=Fixed(limit=easy), medium=Fixed(limit=medium), hard=Fixed(limit=hard))


RECIPE = recipe(
    "webgym/exact",
    SearchWalk(depths=(2, 6, 14), wastes=0.5, quits=0.05, horizon=LONG),
    Imitated(
        turns=by_difficulty(6, 12, 24),
        credit=FilteredBC(),
        loss=Reinforce(),
        group=16,
        rate=16.0,
        most=TURNS,
    ),
    iterations=120,
)

_long, _arm = {"turns": Fixed(limit=LONG)}, RECIPE.replace(every=RECIPE.iterations)
_strict = _arm.replace(problem=Strict(depths=(2, 6, 14), wastes=0.1, quits=0.3, horizon=LONG))

CLAIM = Claim(
    name="webgym/exact",
    paper="arXiv 2601.02439, ablation of the training horizon",
    statement="At equal sampled turns, and tested with many turns, imitation of successes under short horizons by "
    "difficulty solves more than under a long one.",
    recipe=_arm,
    arms={
        "short": _arm,
        "long": _arm.replace(method=_long),
        "long_twice": _arm.replace(method={**_long, "most": 2 * TURNS}),
        "too_short": _arm.replace(method={"turns": by_difficulty(6, 12, 12)}),
        "strict_short": _strict,
        "strict_long": _strict.replace(method=_long),
    },
    expected=Ordering(relations=("short > long by 0.03",)),
    # where no success can take a detour, a horizon leaves none out
    control=Ordering(relations=("strict_short > strict_long by 0.01",)),
    # hard tasks need 15 turns: under 12 they are never solved
    reported=Ordering(relations=("long > short by 1 in length", "short > long_twice", "long > too_short by 0.03")),
    seeds=tuple(range(140, 170)),
)
