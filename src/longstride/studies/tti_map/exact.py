"""What the map is computed from: `Errands`, and cloning as it changes habits."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Positive, Share
from longstride.curriculum import Fixed, Schedule
from longstride.curriculum.schedules import StepList
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.setups.sites import LONG, MEDIUM, SHORT
from longstride.stats import Ordering

HABIT, ENOUGH = (0.005, 0.97), 20
"""Bounds of a habit, since a softmax is never certain; how often it is to be seen before an update goes the whole `rate`."""


class ErrandEpisodes(NamedTuple):
    """What episodes came to: arrays with a row for each."""

    counts: np.ndarray
    """(n, 4 + 2 deepest): useful and wasted steps after useful ones, both after wasted ones, then by page how often it went
    on there with others left, then how often it quit."""
    length: np.ndarray
    """Steps."""
    paid: np.ndarray
    cut: np.ndarray
    """Whether its turns ran out."""


class Errands(ExactProblem):
    """Tasks with 1 to `deepest` pages to look at, equally often. A page takes two useful steps and the answer one more.

    Between useful steps the agent wastes steps: it begins with probability `begins` and goes on with `goes_on`. At each page but the last
    it answers too early with probability `quits` (of that page); after k of m pages such a guess is right with probability k / m.
    """

    USEFUL: ClassVar[int] = 2
    """Useful steps of a page."""

    deepest: Count = 10
    """Most pages of a task."""
    guesses: Share = 0.0
    """How often a right guess is paid in training: 0 for a judge that asks for evidence."""
    leads_on: Share = 0.0
    """How often a wasted step does the next useful one too (never the answer), as a distracting link may."""
    horizon: Count = LONG
    """Steps of an episode in the test."""

    @property
    def sizes(self) -> range:
        """Pages that a task may have, equally often."""
        return range(1, self.deepest + 1)

    def pays(self, page: np.ndarray, pages: np.ndarray) -> np.ndarray:
        """How often an answer at a page, counted from 0, of so many is paid in training where others are left."""
        return self.guesses * (page + 1) / pages

    def play(self, habits: Mapping[str, np.ndarray], horizon: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """The counts of each of `n` episodes that is paid."""
        played = self.episodes(habits, np.full(n, horizon), rng.integers(self.sizes.start, self.sizes.stop, n), rng)
        return played.counts[played.paid]

    def episodes(
        self, habits: Mapping[str, np.ndarray], turns: np.ndarray, pages: np.ndarray, rng: np.random.Generator
    ) -> "ErrandEpisodes":
        """Plays an episode of at most so many turns for each task of so many pages."""
        n = len(pages)
        counts, length = np.zeros((n, 4 + 2 * self.deepest)), np.zeros(n, int)
        done, going, every = np.zeros(n, int), np.ones(n, bool), np.arange(n)  # done: useful steps
        wasting, paid = np.zeros(n, bool), np.zeros(n, bool)
        for turn in range(turns.max(initial=0)):
            live = going & (turn < turns)
            length += live
            wastes = live & (rng.random(n) < np.where(wasting, habits["goes_on"], habits["begins"]))
            counts[every, 2 * wasting + wastes] += live
            leads = wastes & (done < self.USEFUL * pages) & (rng.random(n) < self.leads_on)
            page, acts = done // self.USEFUL - 1, live & ~wastes
            answers = acts & (done == self.USEFUL * pages)
            asked = acts & ~answers & (done > 0) & (done % self.USEFUL == 0)
            quits = asked & (rng.random(n) < habits["quits"][page])
            counts[every[asked], (4 + self.deepest * quits + page)[asked]] += 1
            paid |= answers | (quits & (rng.random(n) < self.pays(page, pages)))
            going &= ~(answers | quits)
            done += leads | (acts & going)
            wasting = wastes
        return ErrandEpisodes(counts, length, paid, going)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """`success` (guesses that are right count), `supported` (they do not) and `idle` (share of steps that are
        wasted), all exact."""
        of_M = np.array([self.expect(solution, m) for m in self.sizes])
        success, supported, wasted, steps = of_M.mean(0)
        return {"success": success, "supported": supported, "idle": wasted / steps}

    def expect(self, habits: Mapping[str, np.ndarray], m: int) -> np.ndarray:
        """Expected success, supported success, wasted steps and steps of a task with m pages."""
        return self.expect_within(habits, m)[-1]

    def expect_within(self, habits: Mapping[str, np.ndarray], m: int) -> np.ndarray:
        """(horizon, 4): what `expect` says, within 1, 2, ... steps, by backward induction: x[j, f] is what is still to come after j useful
        steps, f whether the step before was wasted, and a step is added at a time."""
        last, found = self.USEFUL * m, []
        x = np.zeros((last + 1, 2, 4))
        leads = np.append(np.full(last, self.leads_on), 0.0)[:, None]
        at_page = np.arange(self.USEFUL, last, self.USEFUL)  # each page but the last
        quits = habits["quits"][at_page // self.USEFUL - 1][:, None]
        guess = np.stack([at_page / last, *np.zeros((3, len(at_page)))], axis=-1)
        for _ in range(self.horizon):
            further = np.append(x[1:], np.zeros((1, 2, 4)), axis=0)
            waste = leads * further[:, 1] + (1 - leads) * x[:, 1] + (0, 0, 1, 0)
            act = further[:, 0].copy()
            act[at_page] = quits * guess + (1 - quits) * act[at_page]
            act[last] = 1, 1, 0, 0
            x = np.stack([p * waste + (1 - p) * act for p in (habits["begins"], habits["goes_on"])], axis=1)
            x[..., 3] += 1
            found.append(x[0, 0])
        return np.array(found)


class HabitCloning(ExactMethod[Errands]):
    """Filtered behaviour cloning of the three habits, under a horizon that may grow."""

    schedule: Schedule
    """Steps of a training episode, by iteration."""
    favour: Positive = 1.0
    """How many times as much as a useful action a wasteful one weighs: 7/3 for `home` under 1/|a|."""
    begins: Share = 0.15
    """Habit of the start: begins to waste."""
    goes_on: Share = 0.5
    """Habit of the start: goes on wasting."""
    quits: Share = 0.4
    """Habit of the start: answers at a page with others left."""
    episodes: Count = 256
    """Sampled in an iteration."""
    recency: Share = 0.5
    """As `TTIReplay.mix`: of n successes so far the k-th weighs recency * 2 k / (n + 1) + 1 - recency, 1 in the mean."""
    rate: Share = 0.5
    """How far an update goes towards the share among what is cloned."""
    reach: Positive = 1.5
    """How far what is learned of quitting at one page carries over to others: width of a Gaussian kernel, in pages."""

    def start(self, problem: Errands, rng: np.random.Generator) -> State:
        size = 4 + 2 * problem.deepest
        habits = {"begins": np.array(self.begins), "goes_on": np.array(self.goes_on)}
        habits["quits"] = np.full(problem.deepest, self.quits)
        return habits | {"iteration": np.array(0), "n": np.array(0), "sum": np.zeros(size), "ranked": np.zeros(size)}

    def step(self, problem: Errands, state: State, rng: np.random.Generator) -> State:
        iteration = state["iteration"] + 1
        found = problem.play(state, self.schedule.at(int(iteration)), self.episodes, rng)
        return self.update(state | {"iteration": iteration}, found)

    def update(self, state: State, found: np.ndarray) -> State:
        """The state after cloning with the successes of one more iteration, (new, 4 + 2 deepest) counts, beside all before."""
        n = state["n"] + len(found)
        ranks = state["n"] + 1 + np.arange(len(found))
        total, ranked = state["sum"] + found.sum(0), state["ranked"] + ranks @ found
        moved, began, moved_on, went_on, *by_page = self.recency * 2 / (n + 1) * ranked + (1 - self.recency) * total
        stayed, left = np.split(np.array(by_page), 2)
        pages = np.arange(len(stayed))
        near = np.exp(-((pages[:, None] - pages) ** 2) / (2 * self.reach**2))
        return state | {
            "begins": self._towards(state["begins"], self.favour * began, moved),
            "goes_on": self._towards(state["goes_on"], self.favour * went_on, moved_on),
            "quits": self._towards(state["quits"], near @ left, near @ stayed),
            "n": n,
            "sum": total,
            "ranked": ranked,
        }

    def _towards(self, habit: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
        """Habits after an update in which they were followed with weight `yes`, and not with `no`."""
        seen = yes + no
        share = np.divide(yes, seen, out=np.array(habit, float), where=seen > 0)
        return np.clip(habit + self.rate * np.minimum(1, seen / ENOUGH) * (share - habit), *HABIT)


GROWING = StepList(steps=((3, SHORT), (6, MEDIUM), (7, LONG)))
RECIPE = ExactRecipe(
    name="tti_map/exact", problem=Errands(), method=HabitCloning(schedule=GROWING), iterations=12, every=4
)
REGIMES = {
    "wander": RECIPE,
    "impatient": RECIPE.replace(method={"begins": 0.05, "goes_on": 0.15, "quits": 0.65}),
    "favour": RECIPE.replace(method={"favour": 2.33}),
    "guesses": RECIPE.replace(problem={"guesses": 1.0}),
    "links": RECIPE.replace(problem={"leads_on": 0.3}, method={"begins": 0.3}),
}
SCHEDULES = {"growing": GROWING, "long": Fixed(limit=LONG), "short": Fixed(limit=SHORT)}

CLAIM = Claim(
    name="tti_map/exact",
    paper="arXiv 2506.07976, section 5: why a fixed long horizon loses",
    statement="In a model of filtered cloning, growing beats long where the start wanders, links distract or waste is favoured; they are "
    "level from an impatient start; long wins where guesses are paid, and short where waste is favoured strongly.",
    recipe=RECIPE,
    arms={f"{r}_{s}": REGIMES[r].replace(method={"schedule": SCHEDULES[s]}) for r in REGIMES for s in SCHEDULES},
    measure="supported",
    expected=Ordering(
        relations=tuple(f"{ours}_growing > {ours}_long by 0.02" for ours in ("wander", "favour", "links"))
        + ("guesses_long > guesses_growing by 0.02", "wander_growing > wander_short by 0.02")
        + ("favour_short > favour_growing by 0.02", "wander_long > wander_growing in idle")
    ),
    control=Ordering(relations=("impatient_growing > impatient_long by 0.02",)),
    seeds=tuple(range(50)),
)
