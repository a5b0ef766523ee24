"""RISE: recursive introspection. Qu et al., 2024, "Teaching Language Model Agents How to Self-Improve", arXiv 2407.18219.

One problem becomes an episode of several attempts. The history is the policy's own failed attempts, so it learns from
the mistakes that it makes: it imitates the best of N attempts that it makes after them, weighted by reward.

| place | choice | paper and release (Llama 2, Llama 3 and Mistral of 7B and 8B) | here |
|---|---|---|---|
| plan | `Introspection` | attempts of the policy until one is right, 2 in training | the same, 3 in training |
| plan | the next attempt | best of N = 16 of the policy's own, or a stronger model's | best of 4 of its own |
| plan | rounds | 2 or 3, of all training problems | 10 iterations of 128 tasks |
| roll out | `RecentTurns` | a window: one earlier attempt | the same |
| roll out | what follows an attempt | "incorrect, try again" | `check again` |
| score | `TaskReward` | right or wrong, each attempt | the same |
| credit | `BestOfN` | exp(r / tau), tau = 0.4 in the release; in the paper r less the mean of the prompt | as the release |
| update | `Reinforce`, mean over samples | weighted likelihood of the attempt, mean over its tokens | the same |
| update | rate | 1e-5, cosine | 5e-4, as in `setups.puzzles` otherwise |
| test | `After`, `ParallelAttempts` | 5 attempts; majority vote, or with an oracle that stops at a right one | the same |

Deviations: model and puzzles are those of `grpo`; the release also leaves out a target that repeats an earlier attempt.
The shipped base knows two attempts, and with the window a third one reads no more than a second. Centred weights learned
more slowly: in iterations 6 to 8 of one run 0.48 of first attempts were right, and 0.59 with those of the release. As in
the paper only a failure is followed by another attempt in training; so without an oracle a right answer is often lost.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean
from typing import Literal

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Positive
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Attempts
from longstride.envs.puzzles.attempts import scores
from longstride.methods import Constant, Credit, Reinforce, Sample
from longstride.recipes.setups import puzzles
from longstride.rollout.context import RecentTurns
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.planning import Planner, Sampler, Stages, by_group
from longstride.rollout.players import Player
from longstride.rollout.summary import Measure
from longstride.stats import Ordering
from longstride.strategies import Direct, EvalEpisode, EvalPlan, Strategy


class Introspection(Sampler):
    """A group of attempts at each task; where its first member failed, another one that has this attempt as history.

    The first member is chosen without a look at the others, so a history is what the policy does by itself; the best of
    a group is for credit to find (`BestOfN`). The attempt is the last turn of its episode. For `envs.puzzles.Attempts`.
    """

    attempts: Count = 3
    """Most attempts at a task, one after the other."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        states: list[tuple[Task, list[PastTurn]]] = [(task, []) for task in planner.tasks(planner.groups)]
        for number in range(1, self.attempts + 1):
            found = yield [
                plan
                for task, history in states
                for plan in planner.group(_limited(task, number), history=history, role=f"attempt_{number}")
            ]
            played += found
            own = [group[0] for group in by_group(found)]
            states = [(t.task, [PastTurn(u.text, tuple(u.ids)) for u in t.turns]) for t in own if not t.success]
            if not states:
                break
        return played


def _limited(task: Task, attempts: int) -> Task:
    """The task with so many attempts, of which the last one is judged."""
    return task.model_copy(update={"horizon": attempts})


class BestOfN(Credit):
    """Reward-weighted regression on the best attempt of each group (of several the first): each of its tokens weighs

        exp((r - m) / temperature) / |a|,  m = 0, or the mean reward of all attempts at the prompt (`centred`)

    With rewards 0 and 1, answers of one token, N attempts and m = 0 the expected gradient is that of the success p = 1 - q
    times exp(1 / temperature) (1 - q^N) / p - q^(N - 1): a state that is hardly ever solved weighs almost N times as much
    as one that always is.
    """

    temperature: Positive = 0.4
    """tau: the smaller, the less a failure is imitated."""
    centred: bool = False
    """Whether prompts that are solved anyway weigh less (as in the paper); the release does not do so."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        groups = by_group(trajectories)
        rewards: defaultdict[str, list[float]] = defaultdict(list)
        for t in (t for group in groups for t in group):
            rewards[t.task.id].append(t.reward)
        samples = []
        for best in (max(group, key=lambda t: t.reward) for group in groups):
            mean = fmean(rewards[best.task.id]) if self.centred else 0.0
            weight = exp((best.reward - mean) / self.temperature)
            if tokens := len(best.turns[-1].sampled_ids) if best.turns else 0:
                samples.append(Sample.of(best, best.turns[-1], [weight / tokens] * tokens))
        return samples


class After(Measure):
    """Whether a task is solved after so many attempts, which go on after a success."""

    attempts: Count
    """Attempts that count, the first ones."""
    by: Literal["last", "majority", "any"]
    """By the last of them, by the answer that most of them gave (of several the newest), or by any (an oracle)."""

    @property
    def name(self) -> str:
        return f"{self.by}_{self.attempts}"

    def __call__(self, trajectory: Trajectory) -> float:
        return self.of([(u.action, r) for u, r in zip(trajectory.turns, scores(trajectory), strict=True)])

    def of(self, attempts: Sequence[tuple[str | None, float]]) -> float:
        """The score of what counts, of answers (None where there was none) and their scores."""
        counted = attempts[: self.attempts]
        votes = Counter(answer for answer, _ in counted)
        rank = {"last": lambda k: k, "majority": lambda k: (votes[counted[k][0]], k), "any": lambda k: counted[k][1]}
        return counted[max(range(len(counted)), key=rank[self.by])][1] if counted else 0.0


ATTEMPTS = 5  # of a test
OUTCOMES = After(attempts=ATTEMPTS, by="majority"), After(attempts=ATTEMPTS, by="any")


class ParallelAttempts(Strategy):
    """First attempts alone, as many as `Direct` makes one after the other, and `OUTCOMES` of them. The first counts."""

    @property
    def name(self) -> str:
        return "parallel"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        once = [replace(plan, task=_limited(plan.task, 1)) for plan in plans]
        found = yield [replace(p, ordinal=p.ordinal + k * len(plans)) for p in once for k in range(ATTEMPTS)]
        groups = [found[k : k + ATTEMPTS] for k in range(0, len(found), ATTEMPTS)]
        return [EvalEpisode(group[0], self.measures(group)) for group in groups]

    def measures(self, group: Sequence[Trajectory]) -> dict[str, float | None]:
        """`OUTCOMES` of a task's first attempts; None where one of them failed."""
        failed = any(t.stop.failed for t in group)
        attempts = [(turn.action, t.reward) for t in group for turn in t.turns[:1]]
        return {outcome.name: None if failed else outcome.of(attempts) for outcome in OUTCOMES}


RECIPE = puzzles.recipe(
    "rise",
    iterations=10,
    episodes_per_iteration=512,
    group_size=4,
    tasks=Attempts(attempts=ATTEMPTS),
    budget={"turns": ATTEMPTS},
    test_budget={"turns": ATTEMPTS},
    sampler=Introspection(),
    context=RecentTurns(),
    credit=BestOfN(),
    loss=Reinforce(aggregation=Constant()),
    learner={"lr": 5e-4, "batch_samples": 32},
    evaluation={
        "strategies": (Direct(), ParallelAttempts()),
        "measures": (*(After(attempts=n, by="last") for n in range(1, ATTEMPTS + 1)), *OUTCOMES),
    },
)

ARM = RECIPE.replace(iterations=8, evaluation={"every": 8, "tasks": 400})

CLAIM = Claim(
    name="rise",
    paper="arXiv 2407.18219, abstract",
    statement="Trained on its own failed attempts, a policy solves more tasks in five attempts, one after the other, than "
    "one that was trained on first attempts alone, from about as many episodes.",
    recipe=ARM,
    arms={"rise": ARM, "first_attempts": ARM.replace(sampler={"attempts": 1}, episodes_per_iteration=960)},
    measure=f"any_{ATTEMPTS}",
    expected=Ordering(relations=("rise > first_attempts",)),
    # where only one attempt is made there is nothing to learn from
    control=Ordering(relations=("rise > first_attempts by 0.03 in last_1",)),
    seeds=(10, 11, 12, 13, 14),
)
