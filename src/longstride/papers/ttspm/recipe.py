"""TTSPM with a language model: many attempts at each task, and coverage by their number, predicted from few.

With your own: `longstride train ttspm model=MODEL tasks.type=dataset tasks.path=tasks.jsonl`, or any run with
`evaluation.attempts`, then `longstride fit RUN --x attempts --y pass --law geometric --gain 0.002`.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.engines.base import Sampling
from longstride.envs.puzzles import ModularChain
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.scaling import Geometric, MixedGeometric, Power
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

RECIPE = puzzles.tested("ttspm", (Direct(),), evaluation={"tasks": 100, "attempts": 64, "sampling": Sampling()})

MIXED = Extrapolation(
    name="ttspm/forecast",
    run=RECIPE.replace(tasks=ModularChain(), evaluation={"tasks": 80, "attempts": 32}),
    x="attempts",
    y="pass",
    readings={
        "one_chance": Reading(law=Geometric(), until=0.25),
        "power": Reading(law=Power(), until=0.25),
        "beta": Reading(law=MixedGeometric(), until=0.25),
    },
)
_APART = {"alike": (7, 7, 7), "near": (4, 7, 10), "apart": (2, 7, 12)}
"""Lengths of easy, medium and hard chains, of one mean."""

CLAIM = Claim(
    name="ttspm",
    paper="arXiv 2505.20522, section 3 (the closed form); that it needs chances that do not differ is ours",
    statement="From at most 8 attempts a task, a language model's coverage at 16 and 32 is foretold more closely by chances that "
    "differ as a Beta than by the closed form of one chance, where tasks differ in difficulty.",
    recipe=MIXED,
    arms={
        "mixed": MIXED,
        **{of: MIXED.replace(run={"tasks": {"lengths": lengths}}) for of, lengths in _APART.items()},
    },
    measure="closer",
    expected=Ordering(relations=("mixed@beta > mixed by 0.05",)),
    # the more tasks differ in difficulty, the less there is one chance
    dose=tuple(f"{of}@beta > {of}" for of in _APART),
    reported=Ordering(relations=("mixed@power > mixed", "mixed@beta > mixed@power")),
    worlds={"run.tasks.lengths": Between(low=2, high=12, shape=(3,))},
    seeds=tuple(range(440, 448)),
    tuning_seeds=(930, 931),
    grid={"run.evaluation.sampling.temperature": (0.6, 0.8, 1.0, 1.25, 1.6, 2.0)},
    tuning={"run.evaluation.attempts": 16},
    tuned_by="reached",
    cost="env_steps",
    scale=(-1.0, 1.0),
)

FINDING = (
    "The Beta is closer in each of the eight worlds, but by .05 only in six. Its gain does not come of lengths that are apart: it is .064 on "
    "chains of one length, .085 where lengths are near and .053 where they are far apart, so chains of seven steps are not solved with one chance "
    "either. A weakness of the dose: each of its arms was tuned to the highest coverage, at an end of the grid (temperatures .6, .6 and 2), so "
    "the temperature changes with it."
)
