"""BFS-Prover with a language model on chains, which a verifier checks: best-first search over steps, and cloning of the
steps in the middle of what it found.

`longstride train bfs_prover model=MODEL tasks.type=SOURCE` is expert iteration on your own tasks; a step ends at
`imitation.demonstrations.strategy.mark`. `longstride eval RUN --strategy best-first guide.type=path_likelihood`
searches.
"""

import random
from collections.abc import Sequence

from longstride.claims.claim import Claim
from longstride.core.numbers import Share
from longstride.core.seeds import derive
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import ModularChain
from longstride.envs.puzzles.modular import Chain
from longstride.methods import Mean, OnPolicy, Reinforce
from longstride.methods.cloning import FilteredBC
from longstride.run.filters import Filter, FoundStep, Novel, PerplexityBand
from longstride.run.imitation import Imitation, StrategySuccesses
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.search import BestFirst
from longstride.strategies.searched import Checked, PathLikelihood, Searched

SEARCH = Searched(
    search=BestFirst(expansions=24, width=4, accepted=1.0), guide=Checked(guide=PathLikelihood(alpha=1.0))
)
LOW, HIGH = 1.02, 1.13
"""Perplexity of a token: of the steps that lead to answers of the start a tenth is below 1.005, half below 1.09 and a
tenth above 1.12."""

RECIPE = puzzles.recipe(
    "bfs_prover",
    tasks=ModularChain(),
    iterations=12,
    # the policy's own answers beside those of its search: a few, for the rest is imitation
    episodes_per_iteration=32,
    replay=OnPolicy(),
    credit=FilteredBC(),
    loss=Reinforce(aggregation=Mean(over="token")),
    learner={"lr": 1e-4},
    imitation=Imitation(
        demonstrations=StrategySuccesses(strategy=SEARCH, filters=(Novel(), PerplexityBand(low=LOW, high=HIGH))),
        episodes=96,
    ),
    evaluation={"every": 4, "tasks": 300, "strategies": (Direct(), SEARCH)},
)

ARM = RECIPE.replace(iterations=6, evaluation={"every": 6, "tasks": 300, "start": False, "strategies": (Direct(),)})


class Proved(Filter):
    """Solutions of modular chains all of whose steps are there and right, and a share of those that a right answer came
    out of by chance: nothing of the others is imitated. For experiments: it reads the solution, as `Oracle` does."""

    chance: Share = 0.0
    """Share of the solutions by chance that are kept: the same ones in every run that found them."""

    def __call__(self, steps: Sequence[FoundStep]) -> list[FoundStep]:
        kept = {id(t): self._keeps(t) for t in {id(s.trajectory): s.trajectory for s in steps}.values()}
        return [step for step in steps if kept[id(step.trajectory)]]

    def _keeps(self, solution: Trajectory) -> bool:
        chain = Chain.of(solution.task)
        labels = chain.step_labels(solution.turns[-1].text)
        if len(labels) == len(chain.operations) and all(labels):
            return True
        return random.Random(derive(solution.seed, "proved", solution.ordinal)).random() < self.chance


def _filtered(*filters: Filter) -> Recipe:
    return ARM.replace(imitation={"demonstrations": {"filters": (Novel(), *filters)}})


BAND = PerplexityBand(low=LOW, high=HIGH)
_half = Proved(chance=0.5)

CLAIM = Claim(
    name="bfs_prover",
    paper="arXiv 2509.06493, tactic filtering",
    statement="A policy that clones its search without the steps of lowest and highest perplexity solves more than one "
    "that clones all steps.",
    recipe=ARM,
    arms={
        "both": ARM,
        "all": _filtered(),
        "low": _filtered(PerplexityBand(low=LOW)),
        "high": _filtered(PerplexityBand(high=HIGH)),
        "half_both": _filtered(_half, BAND),
        "half_all": _filtered(_half),
        "proved_both": _filtered(Proved(), BAND),
        "proved_all": _filtered(Proved()),
        # a rate that is not in the grid, so that it is not tuned: nothing is learned
        "untrained": ARM.replace(iterations=1, learner={"epochs": 0, "lr": 2e-4}, imitation=None),
    },
    expected=Ordering(relations=("both > all by 0.02",)),
    # a step is noise where the answer that followed it was right by chance: of such solutions none, half, and all are cloned
    dose=("proved_both > proved_all", "half_both > half_all", "both > all"),
    reported=Ordering(relations=("all > untrained", "low > all", "high > all")),
    grid={"learner.lr": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)},
    tuning_seeds=(900, 901),
    cost="iterations",
    seeds=tuple(range(1100, 1124)),
)

FINDING = (
    "Noise is what the verifier accepts and proves nothing: answers that come too early and are right by chance. Where none of these is cloned the "
    "filter costs .197, where half of them are it is level (-.02), where all are it gains .130. It is the upper end that gains: leaving out improbable "
    "steps alone ends at .922, .279 ahead of all steps, and leaving out trivial ones alone .082 behind. So on these chains leave out the upper "
    "end alone. Cloning proofs alone, which takes a verifier of steps, ends at .965."
)
