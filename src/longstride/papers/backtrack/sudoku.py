"""A search in one thought against many short attempts on Sudoku, where a wrong digit shows late: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Sudoku
from longstride.papers.backtrack.recipe import WAYS, recipe, shown, under
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = recipe("backtrack/sudoku", Sudoku(blanks=(8, 9, 10)), cloning={"episodes": 6000})

CLONED = RECIPE.replace(**puzzles.UNTRAINED).replace(**under("thought"))
SHALLOW = {"blanks": (3, 4, 5)}
"""In one task of twenty a first digit that is possible is wrong."""
_shallow = CLONED.replace(tasks=SHALLOW, **shown(tasks=SHALLOW))
_sequential = "{0}search@thought > {0}direct@attempts"

CLAIM = Claim(
    name="backtrack/sudoku",
    paper="arXiv 2504.07052, abstract",
    statement="Within as many tokens of a test, a model of Sudoku that was shown searches and makes one of them has more success than one that was "
    "shown solutions alone and attempts a task again and again; where little is blank, it has not.",
    recipe=CLONED,
    arms={
        "search": CLONED,
        "direct": CLONED.replace(**shown(style="direct"), **under("attempts")),
        "shallow_search": _shallow,
        "shallow_direct": _shallow.replace(**shown(style="direct"), **under("attempts")),
        "rl_search": RECIPE.replace(**under("thought")),
        "rl_direct": RECIPE.replace(**shown(style="direct"), **under("attempts")),
    },
    expected=Ordering(relations=(_sequential.format("") + " by 0.05",)),
    control=Ordering(relations=(_sequential.format("shallow_") + " by 0.05",)),
    reported=Ordering(relations=("rl_search@thought > search@thought", "rl_direct@thought > direct@thought")),
    ways={name: tuple(strategy.name for strategy in of) for name, of in WAYS.items()},
    along="spent_tokens",
    seeds=tuple(range(2140, 2152)),
    tuning_seeds=(997, 998),
    grid={"cloning.learner.lr": (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)},
    cost="spent_tokens",
    equal_cost=True,
)
