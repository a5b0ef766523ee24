"""`Worth` on trails of pages, beside four schedules at equal environment steps (method and replay: `tti/dial`).

Distances go from 4 to 30 actions, a third of them in each band, and the start wastes nearly half of its turns and quits: a
short limit meets no success but near ones, and a long one spends its steps on episodes that are lost, and clones waste.
Every arm is TTI's filtered cloning with equal weights; only what limits an episode differs. The steps of episodes that went
on count, those included that are taken again.
"""

from longstride.curriculum import Fixed, Multiplicative
from longstride.curriculum.schedules import StepList
from longstride.papers.tti import dial as tti
from longstride.studies.worth.method import Onward, Worth

SHORT, LONG = 8, 64

RECIPE = tti.RECIPE.replace(
    name="worth",
    iterations=16,
    tasks={"distances": (4, 30)},
    budget={"turns": Worth(start=SHORT, limit=LONG)},
    sampler=Onward(),
    test_budget={"turns": Fixed(limit=LONG)},
    evaluation={"every": 2, "tasks": 162},
)


def under(turns: Fixed | Multiplicative | StepList, iterations: int = 16) -> dict[str, object]:
    """The change to another schedule, without a second round."""
    return {"budget": {"turns": turns}, "sampler": {"type": "groups"}, "iterations": iterations}


ARMS = {
    "worth": RECIPE,
    "short": RECIPE.replace(**under(Fixed(limit=SHORT), 40)),
    "long": RECIPE.replace(**under(Fixed(limit=LONG), 10)),
    "multiplicative": RECIPE.replace(**under(Multiplicative(start=SHORT, limit=LONG))),
    "slow": RECIPE.replace(**under(StepList(steps=((4, 8), (8, 24), (12, 40), (13, LONG))))),
}
