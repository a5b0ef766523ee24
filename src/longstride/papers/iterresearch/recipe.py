"""IterResearch on trails with codes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.dial import DialCodes
from longstride.learner.config import LearnerConfig
from longstride.methods import GSPO, GroupRelative
from longstride.papers.iterresearch.method import EfficiencyAware, ReportedSolutions, Workspace
from longstride.rollout.context import RecentTurns
from longstride.run.imitation import Cloning, SolverDemonstrations
from longstride.setups import dial
from longstride.stats import Ordering

RECIPE = dial.recipe(
    "iterresearch",
    iterations=6,
    group_size=8,
    tasks=DialCodes(distances=(2, 9), test_distances=(3, 6, 16), codes=2),
    budget={"turns": 24, "turn_tokens": 24},
    test_budget={"turns": 48, "turn_tokens": 24},
    context=Workspace(placeholder="nothing here"),
    cloning=Cloning(
        demonstrations=ReportedSolutions(),
        episodes=1600,
        learner=LearnerConfig(lr=1e-3, batch_samples=64, warmup_steps=5, dtype="float32", threads="auto"),
    ),
    credit=EfficiencyAware(discount=0.95),
    loss=GSPO(),
    learner={"lr": 2e-4, "batch_samples": 64},
    evaluation={"every": 3, "tasks": 120},
)

WINDOW = {"context": RecentTurns(keep=4), "cloning": {"demonstrations": SolverDemonstrations()}}

CLAIM = Claim(
    name="iterresearch",
    paper="arXiv 2511.07327, abstract",
    statement="By equal environment steps, a policy that reads its own report and the newest page has more success than one that reads the "
    "first page and its newest four turns, the more so the longer ago something was seen that the answer needs.",
    recipe=RECIPE,
    arms={
        "report": RECIPE,
        "window": RECIPE.replace(**WINDOW),
        "undiscounted": RECIPE.replace(credit=GroupRelative()),
    },
    expected=Ordering(relations=("report > window by 0.1",)),
    dose=tuple(f"report > window in success_{far}" for far in ("easy", "medium", "hard")),
    reported=Ordering(relations=("undiscounted > report in length", "report > undiscounted")),
    seeds=tuple(range(600, 612)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (5e-5, 1e-4, 2e-4, 4e-4, 8e-4)},
    tuning={"iterations": 3, "evaluation.every": 3},
    cost="env_steps",
    equal_cost=True,
)

FINDING = (
    "A policy that reads its report and the newest page has a success of 0.88, one that reads the first page and its newest four turns "
    "0.47 (+0.41 [0.36, 0.47]), by as many steps, and by as many tokens too. The longer ago something was seen, the larger the "
    "difference: 0.09, 0.34 and 0.80. The geometric discount (beside no discount, and means over episodes) changes neither success nor length. "
    "Rates were tuned on half of a run; run whole beside them afterwards, on the tuning seeds, the second gains 0.04 at the best and the first 0.01."
)
