"""Digi-Q on twenty questions: the more of the stored games failed, the more best of N adds to cloning (see `digi_q`).

What is stored is played by a start that was shown some games of the solver, and all arms learn from the same games. The
fewer it was shown, the more of them fail: that is the dose. Cloning of successes knows no action that was not taken.

| arm | Q | what is imitated |
|---|---|---|
| `digi_q` | frozen features | the best of 16 in each turn |
| `filtered` | none | what was done in games that were won |

`filtered` learns in batches of 64 turns, the other of 256. Proposals take no step of a game, so that what is spent is
counted in steps and not in tokens.

Deviations: those of `digi_q`.
"""

from longstride.claims.claim import Claim
from longstride.methods import FilteredBC, OnPolicy, Reinforce
from longstride.papers.digi_q.method import BestCandidate, Candidates, FrozenQ
from longstride.setups import games
from longstride.stats import Ordering

RECIPE = games.recipe(
    "digi_q/games",
    replay=Candidates(),
    credit=BestCandidate(),
    critic=FrozenQ(encoder="base-puzzles"),
    loss=Reinforce(),
    learner={"lr": 5e-4, "epochs": 4},
    **games.QUESTIONS,
)

_filtered = {"replay": OnPolicy(), "learner": {"batch_samples": 64}, "credit": FilteredBC(), "critic": None}
_fair, _good = {"cloning": {"episodes": 600}}, {"cloning": {"episodes": 1500}}

CLAIM = Claim(
    name="digi_q/games",
    paper="arXiv 2502.15760, abstract",
    statement="Imitating the best of sixteen candidates by a learned Q wins more games than cloning the games that were won, all from the same stored "
    "games, and by the more the more of those were lost.",
    recipe=RECIPE,
    arms={
        "digi_q": RECIPE,
        "filtered": RECIPE.replace(**_filtered),
        "digi_q_fair": RECIPE.replace(**_fair),
        "filtered_fair": RECIPE.replace(**_filtered).replace(**_fair),
        "digi_q_good": RECIPE.replace(**_good),
        "filtered_good": RECIPE.replace(**_filtered).replace(**_good),
    },
    expected=Ordering(relations=("digi_q > filtered by 0.03",)),
    dose=("digi_q_good > filtered_good", "digi_q_fair > filtered_fair", "digi_q > filtered"),
    seeds=tuple(range(2100, 2120)),
    tuning_seeds=(951, 952),
    grid={"learner.lr": (4e-5, 1.3e-4, 4e-4, 1.3e-3, 4e-3)},
    cost="env_steps",
)
