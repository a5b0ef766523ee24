"""The choice of a search by scorer, with a language model (`ChosenByScorer`), and scorers of whole solutions (`WholeSolutions`)."""

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from longstride.core.budget import StopReason
from longstride.core.trajectory import Trajectory
from longstride.envs.text import STEP_END
from longstride.rewards.scorers import Score
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.chosen import crossed, folded
from longstride.strategies.search import Search
from longstride.strategies.searched import Guide, Searched


class WholeSolutions(Guide):
    """A scorer of whole solutions, such as a judge that has seen no others (an outcome reward model): what may
    go on is worth 0.5, and it is not asked."""

    guide: Guide
    """Scores what is finished."""

    @property
    def name(self) -> str:
        return f"whole_{self.guide.name}"

    def check(self, player: Player) -> None:
        self.guide.check(player)

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        finished = [t for t in solutions if t.stop not in (StopReason.MARK, StopReason.TURNS)]
        scores = dict(zip(map(id, finished), self.guide(finished, player), strict=True))
        return [scores.get(id(t), Score(0.5)) for t in solutions]


class ChosenByScorer(Strategy):
    """Of several searches the one that did best on other tasks under the same scorer: theta*(policy, scorer, budget)
    of section 3.1. Searches that cost about as much are of one budget.

    Every search is played under every guide. What counts for a guide on a fold of the tasks was chosen by the other
    fold alone. A task has one outcome for each guide; its tokens are the mean of those, and the trajectory is that of the
    first guide. Measures: `solved`, the share of the guides with which the task was solved; for each guide
    `solved_GUIDE`, and `search_GUIDE`, the number of the search that was chosen, from 0.
    """

    guides: Annotated[tuple[Guide, ...], Field(min_length=2)]
    """Scorers of beginnings, such as `asked` with a judge of one's own."""
    searches: Annotated[tuple[Search, ...], Field(min_length=2)]
    """What there is to choose from; the first of equals is chosen."""
    aware: bool = True
    """Whether each guide has a search of its own; else all have the one that does best over all of them."""
    mark: str = STEP_END
    """As `Searched.mark`."""

    @model_validator(mode="after")
    def _tells_guides_apart(self) -> Self:
        names = [guide.name for guide in self.guides]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(
                f"guides: two of them are called {min(twice)!r}, under which each is measured; a judge is called as the last "
                "folder of its run"
            )
        return self

    @property
    def name(self) -> str:
        mark = "" if self.mark == STEP_END else f"_at_{self.mark!r}"
        who = "by_scorer" if self.aware else "for_all"
        return f"chosen_of_{len(self.searches)}_{who}_of_{len(self.guides)}{mark}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        tried_GS: list[list[list[EvalEpisode]]] = []
        for guide in self.guides:
            tried_GS.append([])
            for search in self.searches:
                found = yield from Searched(search=search, guide=guide, mark=self.mark).run(plans, player)
                tried_GS[-1].append(found)
        folds = folded([plan.group for plan in plans], [0] * len(plans))
        won_FSG = np.zeros((2, len(self.searches), len(self.guides)))
        for k, fold in enumerate(folds):
            if not any(of_search[k].trajectory.stop.failed for of_guide in tried_GS for of_search in of_guide):
                won_FSG[fold] += [
                    [of_guide[s][k].trajectory.success for of_guide in tried_GS] for s in range(len(self.searches))
                ]
        best_FG = crossed(won_FSG, self.aware)
        return [
            self._counted([of_guide[s][k] for of_guide, s in zip(tried_GS, best_FG[fold], strict=True)], best_FG[fold])
            for k, fold in enumerate(folds)
        ]

    def _counted(self, found_G: Sequence[EvalEpisode], best_G: np.ndarray) -> EvalEpisode:
        """What a task came to, of its episodes under the search that each guide has."""
        measures: dict[str, float | None] = {}
        solved_G = [None if e.trajectory.stop.failed else float(e.trajectory.success) for e in found_G]
        for guide, solved, search in zip(self.guides, solved_G, best_G, strict=True):
            measures |= {f"solved_{guide.name}": solved, f"search_{guide.name}": int(search)}
        counted = [solved for solved in solved_G if solved is not None]
        measures["solved"] = fmean(counted) if len(counted) == len(solved_G) else None
        first = found_G[0].trajectory
        spent = round(fmean(e.spent_tokens for e in found_G))
        return EvalEpisode(first, measures, spent - first.sampled_tokens, round(fmean(e.read_tokens for e in found_G)))
