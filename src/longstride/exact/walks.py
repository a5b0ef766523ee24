"""Enumerable episodes of many turns: the library's own credit and losses learn from groups of sampled episodes, under a
horizon that may grow, and success is computed.

The policy is a table of logits over what it sees, and a turn is one token. What always holds: measures are exact, only
training samples; a turn's prompt is the number of what was seen; an episode that its horizon cut is truncated.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Generic, TypeVar

import numpy as np
from pydantic import Field

from longstride.core.budget import Budget, StopReason
from longstride.core.numbers import Count, CountOrZero, Weight
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.curriculum import Schedule
from longstride.exact.experiment import State
from longstride.exact.learner import TableLearner, Tabulated
from longstride.exact.worlds.answers import AnswerTree
from longstride.exact.worlds.tabular import EnumerableMDP


class Walk(Tabulated):
    """A decision problem whose first states are its tasks, equally likely. Measures: `success`, the expected reward, and
    `length`, the expected number of turns, within `horizon`."""

    horizon: Count = 24
    """Turns of an episode in the test."""

    @property
    @abstractmethod
    def world(self) -> tuple[EnumerableMDP, np.ndarray]:
        """The problem, and [S] what the policy sees of each state: numbers from 0 without a gap."""

    @abstractmethod
    def begin(self, rng: np.random.Generator) -> np.ndarray:
        """[R, 1, A] logits of the policy at the start, by what is seen."""

    @property
    def tree(self) -> AnswerTree:
        """What is seen as contexts, and the actions as tokens."""
        mdp, seen = self.world
        return _tree(int(seen.max()) + 1, mdp.rewards.shape[1])

    def play(
        self, logits: np.ndarray, starts_N: Sequence[int] | np.ndarray, horizon: int, rng: np.random.Generator
    ) -> list[Trajectory]:
        """An episode from each of these states; those that begin in one state are a group. Success is a last reward
        of 1."""
        mdp, seen = self.world
        log_policy = self.tree.log_policy(logits)[:, 0]
        choose, move = np.exp(log_policy)[seen].cumsum(-1), mdp.transitions.cumsum(-1)
        state_N, turns = np.array(starts_N), [[] for _ in starts_N]
        for _ in range(horizon):
            live = np.flatnonzero(~mdp.terminal[state_N])
            if not len(live):
                break
            s = state_N[live]
            action = _draw(choose[s], rng)
            state_N[live] = _draw(move[s, action], rng)
            row, earned = seen[s], mdp.rewards[s, action]
            for n, r, a, logp, reward in zip(
                live, row.tolist(), action.tolist(), log_policy[row, action].tolist(), earned.tolist(), strict=True
            ):
                turns[n].append(Turn([r], [a], [logp], [0], "", "", action="act", reward=reward))
        played = []
        for n, (start, taken) in enumerate(zip(starts_N, turns, strict=True)):
            task = Task(id=f"task-{start}", source="exact", goal="", start="")
            stop = StopReason.ENV_ENDED if mdp.terminal[state_N[n]] else StopReason.TURNS
            reward = sum(turn.reward for turn in taken)
            played.append(Trajectory(task, n, 0, Budget(turns=horizon), taken, stop, reward=reward, group=int(start)))
            played[-1].success = bool(taken) and taken[-1].reward == 1
        return played

    def expect(self, logits: np.ndarray, horizon: int) -> tuple[float, float]:
        """The expected reward and the expected number of turns."""
        mdp, seen = self.world
        within, table = replace(mdp, horizon=horizon), logits[seen, 0]
        turns = replace(within, rewards=np.ones_like(mdp.rewards))
        return within.expected_return(table), turns.expected_return(table)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        success, length = self.expect(solution["logits"], self.horizon)
        return {"success": success, "length": length}


def _draw(below_NK: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[N] categories drawn from cumulated probabilities."""
    return (below_NK <= rng.random((len(below_NK), 1)) * below_NK[:, -1:]).sum(1)


@cache
def _tree(rows: int, actions: int) -> AnswerTree:
    return AnswerTree(np.zeros((rows, actions)), np.arange(rows), actions, 1)


W = TypeVar("W", bound=Walk)


class Walked(TableLearner[W], Generic[W]):
    """Groups of episodes from the start of every task, credit, and gradient steps, under a horizon of the iteration."""

    turns: Schedule
    """Turns of a training episode, by iteration."""
    most: CountOrZero = 0
    """Turns that are sampled in all, 0 for any number; nothing is learned after the iteration that reaches it."""

    def start(self, problem: W, rng: np.random.Generator) -> State:
        return super().start(problem, rng) | {"sampled": np.zeros(())}

    def spent(self, problem: W, state: State) -> Mapping[str, float]:
        """Episodes and turns that were played."""
        return {**super().spent(problem, state), "turns": float(state["sampled"])}

    def step(self, problem: W, state: State, rng: np.random.Generator) -> State:
        if self.most and state["sampled"] >= self.most:
            return state
        return super().step(problem, dict(state), rng)

    def collect(self, problem: W, logits: np.ndarray, state: State, rng: np.random.Generator) -> list[Trajectory]:
        """Episodes of every task; counts their turns in `state`."""
        starts = np.flatnonzero(problem.world[0].start).repeat(self.group)
        played = problem.play(logits, starts, self.turns.at(int(state["iteration"]) + 1), rng)
        state["sampled"] = state["sampled"] + sum(t.length for t in played)
        return played


class SearchWalk(Walk):
    """Tasks that need a number of useful turns and then an answer, and a policy that sees how many it took and whether
    that was enough. A turn is useful, wasted or an answer; an answer ends the episode, and is right where it was
    enough."""

    depths: Annotated[tuple[Count, ...], Field(min_length=1)] = (2, 4, 8, 16)
    """Useful turns that each task needs."""
    wastes: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Chance of the start to waste a turn."""
    quits: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Chance of the start to answer."""
    spread: Weight = 0.2
    """Deviation of the logits at the start."""

    @property
    def world(self) -> tuple[EnumerableMDP, np.ndarray]:
        return _search(self.depths, self.horizon)

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        chances = np.log([1 - self.wastes - self.quits, self.wastes, self.quits])
        rows = max(self.depths) + 1
        return chances + self.spread * rng.normal(size=(rows, 1, 3))


@cache
def _search(depths: tuple[int, ...], horizon: int) -> tuple[EnumerableMDP, np.ndarray]:
    """The states of a task are its useful turns so far; the last state of all is the end. Where enough turns were taken,
    what is seen is the largest number."""
    states = sum(depths) + len(depths) + 1
    ways, rewards, seen = np.zeros((states, 3, states)), np.zeros((states, 3)), np.zeros(states, int)
    start, first = np.zeros(states), 0
    for depth in depths:
        start[first], last = 1 / len(depths), first + depth
        for s in range(first, last + 1):
            ways[s, 0, min(s + 1, last)] = ways[s, 1, s] = ways[s, 2, -1] = 1
            seen[s] = s - first
        rewards[last, 2], seen[last] = 1, max(depths)
        first = last + 1
    ways[-1, :, -1] = 1
    return EnumerableMDP(ways, rewards, start, np.arange(states) == states - 1, horizon), seen
