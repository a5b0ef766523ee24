"""R-MCTS with a language model on trails, whose wrong links lead away: the policy searches, and clones whole traversals
of its searches, to act without one.

`longstride train r_mcts model=MODEL tasks.type=SOURCE` is the same on your own tasks, where a step can be taken back
by what `imitation.demonstrations.search.back` says; the value of its own is `imitation.demonstrations.search.guide`.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.methods import Mean, Reinforce
from longstride.methods.cloning import FilteredBC
from longstride.papers.r_mcts.method import Reflective, Traversals
from longstride.run.filters import Effective
from longstride.run.imitation import Imitation, StrategySuccesses
from longstride.run.recipe import Recipe
from longstride.setups import dial
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.search import TreeSearch
from longstride.strategies.searched import Checked, Confidence

TURNS = 16
"""Of an episode, and of a traversal that is cloned: a way of six steps, and five errors with the ways back."""
SEARCH = Reflective(search=TreeSearch(expansions=24, width=2, exploration=0.3), rounds=1)
"""Its value is how likely the policy finds what it does. One round, for the start has read no line of a reflection."""
TEACHER = SEARCH.replace(guide=Checked(guide=Confidence()))
"""On training tasks what is finished is judged by the task."""

RECIPE = dial.recipe(
    "r_mcts",
    tasks={"distances": (2, 7)},
    iterations=8,
    episodes_per_iteration=32,
    budget={"turns": TURNS},
    test_budget={"turns": TURNS},
    credit=FilteredBC(),
    loss=Reinforce(aggregation=Mean(over="token")),
    imitation=Imitation(demonstrations=Traversals(search=TEACHER), episodes=48),
    learner={"lr": 3e-4, "batch_samples": 64},
    evaluation={"every": 4, "tasks": 300, "strategies": (Direct(), SEARCH)},
)

ARM = RECIPE.replace(iterations=6, evaluation={"every": 6, "start": False, "strategies": (Direct(),)})


def _best(of: Recipe) -> Recipe:
    """Clones the paths that the same searches found; what had no effect is no part of a traversal either."""
    return of.replace(imitation={"demonstrations": StrategySuccesses(strategy=TEACHER, filters=(Effective(),))})


def _deep(astray: int) -> Recipe:
    return ARM.replace(tasks={"astray": astray})


_clones: dict[str, Any] = {"traversals": lambda of: of, "best_paths": _best}

CLAIM = Claim(
    name="r_mcts",
    paper="arXiv 2410.02052, section 3.3",
    statement="A policy that clones whole traversals of its searches finds its way without a search more often than one "
    "that clones the paths that these searches found.",
    recipe=ARM,
    arms={
        "traversals": ARM,
        "best_paths": _best(ARM),
        **{f"depth_{n}_{name}": of(_deep(n)) for n in (1, 4) for name, of in _clones.items()},
    },
    expected=Ordering(relations=("traversals > best_paths by 0.05",)),
    # the deeper wrong links lead away, the more it takes to come back
    dose=(
        "depth_1_traversals > depth_1_best_paths",
        "traversals > best_paths",
        "depth_4_traversals > depth_4_best_paths",
    ),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning_seeds=(900, 901),
    cost="iterations",
    seeds=tuple(range(1100, 1112)),
)
