"""SIRI on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative, Mean
from longstride.papers.siri.method import Cosine
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

LONG, SHORT, CYCLE = 128, 48, 12
"""Tokens of an answer at the two ends of a cycle, and its iterations."""

RECIPE = puzzles.recipe(
    "siri",
    iterations=3 * CYCLE,
    budget={"tokens": Cosine(high=LONG, low=SHORT, period=CYCLE)},
    credit=GroupRelative(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
    evaluation={"every": CYCLE // 2, "strategies": (Direct(), Direct(tokens=64))},
)

ARM = puzzles.arm(RECIPE).replace(
    budget={"tokens": Cosine(high=LONG, low=SHORT, period=8)},
    evaluation={"strategies": (Direct(), Direct(tokens=64), Direct(tokens=SHORT))},
)

CLAIM = Claim(
    name="siri",
    paper="arXiv 2509.25176, abstract and figure 1",
    statement="A limit that goes down and up ends more accurate within few tokens than a constant long one, after as many "
    "answers, and by the more the fewer they are.",
    recipe=ARM,
    arms={
        "siri": ARM,
        "long": ARM.replace(budget={"tokens": LONG}),
        "short": ARM.replace(budget={"tokens": SHORT}),
    },
    expected=Ordering(relations=("siri@direct_48_tokens > long@direct_48_tokens by 0.02",)),
    # a model that learned under a long limit may use all tokens of the first test, and the fewest bind it most
    dose=tuple(f"siri{within} > long{within}" for within in ("", "@direct_64_tokens", "@direct_48_tokens")),
    reported=Ordering(relations=("siri > short", "siri@direct_48_tokens > short@direct_48_tokens")),
    seeds=tuple(range(1240, 1256)),
    tuning_seeds=(930, 931),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 8, "evaluation.every": 8},
    cost="env_steps",
)

FINDING = (
    "A constant long limit is ahead: .60 against .57 within all tokens, .57 and .54 within 64, .44 and .43 within 48; the fewer the "
    "tokens, the less. Down and up ends .07 above a constant short one within all tokens, 16 seeds."
)
