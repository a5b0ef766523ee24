"""Traces of a search that goes back, and of the way that it found (`SearchTraces`), and as many attempts as fit in so many
tokens (`WithinTokens`)."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator

from longstride.core.numbers import Count, Share
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Countdown, PuzzleSource, Sudoku
from longstride.envs.puzzles.base import answered
from longstride.envs.puzzles.countdown import Numbers, results
from longstride.envs.puzzles.sudoku import DIGITS, PEERS, Grid, rows
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.starts.demonstrators import Demonstration, Demonstrators
from longstride.strategies.base import EvalPlan, Strategy, nth_plan
from longstride.strategies.best_of import Choice, Verifier

State = tuple[Any, ...]


class SearchTree(Protocol):
    """A puzzle as the tree of its partial solutions."""

    root: State

    def moves(self, state: State) -> list[tuple[str, State]]:
        """Each next step as it is written, and what it leads to, in an order that knows nothing of the solution; none
        where the state is a dead end, or solved."""
        ...

    def solved(self, state: State) -> bool: ...

    def back(self, state: State) -> str:
        """How it is written that the search goes on from an earlier state."""
        ...

    def answer(self, state: State) -> str:
        """The answer that a solved state is."""
        ...


class CountdownTree:
    """A state is the numbers that are left, each with its expression; a step joins two of them."""

    def __init__(self, puzzle: Numbers) -> None:
        self._puzzle = puzzle
        self.root: State = tuple((n, str(n)) for n in puzzle.numbers)

    def moves(self, state: State) -> list[tuple[str, State]]:
        found: dict[tuple[int, ...], tuple[str, State]] = {}  # what leads to the same numbers is tried once
        for pair in itertools.combinations(range(len(state)), 2):
            (a, left), (b, right) = sorted((state[k] for k in pair), key=lambda n: -n[0])
            left, right = (f"( {x} )" if " " in x else x for x in (left, right))
            rest = tuple(n for k, n in enumerate(state) if k not in pair)
            for sign, c in results(a, b, self._puzzle.most):
                after = (*rest, (c, f"{left} {sign} {right}"))
                step = f"{a} {sign} {b} = {c} {self._beside(after)}"
                found.setdefault(tuple(sorted(n for n, _ in after)), (step, after))
        return list(found.values())

    def _beside(self, state: State) -> str:
        """What a small model compares stands side by side, as in `PuzzleTraces`."""
        target, values = self._puzzle.target, [n for n, _ in state]
        if len(values) == 1:
            return f"want {target} {'yes' if self.solved(state) else 'no'}"
        pair = f" ; {max(values)} {min(values)} want {target}" if len(values) == 2 else ""
        return f", {' '.join(map(str, values[:-1]))}{pair}"

    def solved(self, state: State) -> bool:
        return len(state) == 1 and state[0][0] == self._puzzle.target

    def back(self, state: State) -> str:
        return "again" if state == self.root else f"again {' '.join(str(n) for n, _ in state)}"

    def answer(self, state: State) -> str:
        return state[0][1]


class SudokuTree:
    """A state is a grid; a step fills its first blank with a digit that breaks no rule."""

    def __init__(self, puzzle: Grid) -> None:
        self.root: State = puzzle.cells

    def moves(self, state: State) -> list[tuple[str, State]]:
        if self.solved(state):
            return []
        i = state.index(0)
        filled = [(d, (*state[:i], d, *state[i + 1 :])) for d in _possible(state, i)]
        return [(f"{_place(i)} {d}{self._stuck(after)}", after) for d, after in filled]

    def _stuck(self, state: State) -> str:
        """Where the next blank has no digit left, that is said."""
        return "" if self.solved(state) or self.moves(state) else f" ; {_place(state.index(0))} no"

    def solved(self, state: State) -> bool:
        return 0 not in state

    def back(self, state: State) -> str:
        return "again"

    def answer(self, state: State) -> str:
        return rows(state)


def _possible(cells: Sequence[int], i: int) -> list[int]:
    return sorted(set(DIGITS).difference(cells[j] for j in PEERS[i]))


def _place(i: int) -> str:
    return f"{i // 4 + 1} {i % 4 + 1}"


TREES = {Numbers: CountdownTree, Grid: SudokuTree}


def _has_tree(tasks: PuzzleSource) -> PuzzleSource:
    if tasks.kind not in TREES or getattr(tasks, "multi_turn", False):
        raise ValueError(
            f"there is no search for {tasks.type_name()}; expected {Countdown.type_name()} or {Sudoku.type_name()} "
            "with multi_turn=false; traces of other searches go in a file (demonstrators.type=written_traces)"
        )
    return tasks


class SearchTraces(Demonstrators):
    """Depth-first search on Countdown or Sudoku, written down; or of the same search only the way that led to the solution.

    What always holds: traces of both styles are of the same tasks, and end with the same answers; none is seen twice, but
    for tasks that are drawn again.
    """

    tasks: Annotated[PuzzleSource, AfterValidator(_has_tree)] = Countdown(numbers=(3, 3, 3), largest=10, most=30)
    """What is solved."""
    style: Literal["search", "direct"] = "search"
    """`search`: all that was tried, dead ends too; `direct`: the steps of the solution."""
    order: Literal["fixed", "drawn"] = "fixed"
    """In which order steps are tried: always the same one, or one that is drawn at each state (traces of many searches,
    the paper's mix-backtrack)."""
    skips: Share = 0.0
    """Share of the dead ends of one step that are left unsaid, to be thought and not written (the paper's
    think-backtrack)."""
    most: Count = 320
    """Words of a longest search; a task that takes more is in neither style."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            while True:
                task = self.tasks.sample(rng, 1)[0]
                tree: SearchTree = TREES[self.tasks.kind](self.tasks.kind.of(task))
                tried: list[str] = []
                found = self._search(tree, tree.root, rng, tried)
                if found is not None and len(answered(tried, tree.answer(found[1])).split()) <= self.most:
                    break
            way, end = found
            said = answered(tried if self.style == "search" else way, tree.answer(end))
            yield Demonstration(task, [""], [said], [1.0])

    def words(self) -> list[str]:
        return ["again yes no want"]

    def _search(
        self, tree: SearchTree, state: State, rng: random.Random, tried: list[str]
    ) -> tuple[list[str], State] | None:
        """The steps to the first solution below a state, and that solution; None where there is none. All that is tried is
        added to `tried`."""
        if tree.solved(state):
            return [], state
        moves = tree.moves(state)
        if self.order == "drawn":
            rng.shuffle(moves)
        for k, (step, after) in enumerate(moves):
            ends = not tree.solved(after) and not tree.moves(after)
            if ends and rng.random() < self.skips:
                continue
            tried.append(step)
            if (below := self._search(tree, after, rng, tried)) is not None:
                return [step, *below[0]], below[1]
            if k + 1 < len(moves) and not ends:
                tried.append(tree.back(state))
        return None


class WithinTokens(Strategy):
    """Attempts at a task, one after the other, until so many tokens were sampled; a choice says which of them counts. What
    a search in one thought is compared with that may take as many (`direct` with `tokens`)."""

    tokens: Count = 256
    """Of all attempts together; the last one is cut where they end."""
    by: Choice = Verifier()
    """Which of them counts."""

    @property
    def name(self) -> str:
        return f"within_{self.tokens}_tokens_by_{self.by.name}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        self.by.check(player)
        tries: list[list[Trajectory]] = [[] for _ in plans]
        while asked := [(k, left) for k, of in enumerate(tries) if (left := self._left(of))]:
            played = yield [self._attempt(plans[k], len(tries[k]), left) for k, left in asked]
            for (k, _), t in zip(asked, played, strict=True):
                tries[k].append(t)
        return self.by.choose(tries, player)

    def _left(self, tries: Sequence[Trajectory]) -> int:
        """Tokens for another attempt; 0 after one that sampled nothing, for the next would not either."""
        if tries and not tries[-1].sampled_tokens:
            return 0
        return max(0, self.tokens - sum(t.sampled_tokens for t in tries))

    def _attempt(self, plan: Plan, number: int, left: int) -> Plan:
        tokens = left if plan.budget.tokens is None else min(left, plan.budget.tokens)
        budget = plan.budget.model_copy(update={"tokens": tokens})
        return replace(nth_plan(plan, number), budget=budget)
