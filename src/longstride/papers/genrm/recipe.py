"""GenRM on solutions that a policy wrote: reasons are sampled, kept where their verdict fits the label, and learned.

With your own: `longstride train genrm model=MODEL tasks.path=solutions.jsonl`, see docs/guides/judge.md.
"""

from longstride.claims.claim import Claim
from longstride.envs.judgements import Judgements
from longstride.methods import FilteredBC
from longstride.methods.losses import Reinforce
from longstride.papers.genrm.method import Ranked, RightSolutions
from longstride.run.imitation import Imitation
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

RECIPE = puzzles.recipe(
    "genrm",
    credit=FilteredBC(),
    loss=Reinforce(),
    iterations=16,
    model="base-judge",
    tasks=Judgements(),
    imitation=Imitation(demonstrations=RightSolutions(), weight=0.1),
    learner={"lr": 1e-3},
    evaluation={"tasks": 480, "every": 8, "strategies": (Direct(), Ranked())},
)

ARM = RECIPE.replace(
    iterations=8,
    episodes_per_iteration=128,
    learner={"batch_samples": 64},
    evaluation={"every": 8, "tasks": 800, "strategies": (Ranked(),)},
)
AT_ONCE = {"tasks": {"reasons": False}}
SHORT = {"tasks": {"puzzles": {"type": "modular_chain", "lengths": (1, 1, 1)}}}
"""One step a chain: a verdict at once has as much to go by."""

CLAIM = Claim(
    name="genrm",
    paper="arXiv 2408.15240, abstract",
    statement="From as many labelled solutions, a judge that gives its reasons chooses a right one of eight more often than "
    "one that gives its verdict at once.",
    recipe=ARM,
    arms={
        "reasons": ARM,
        "at_once": ARM.replace(**AT_ONCE),
        "short_reasons": ARM.replace(**SHORT),
        "short_at_once": ARM.replace(**SHORT).replace(**AT_ONCE),
    },
    measure="chosen",
    expected=Ordering(relations=("reasons > at_once by 0.05",)),
    control=Ordering(relations=("short_reasons > short_at_once by 0.05",)),
    seeds=tuple(range(300, 324)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 2e-3, 4e-3)},
    tuning={"iterations": 4},
    cost="env_steps",
)

FINDING = (
    "On chains of several steps the judge that gives its reasons chooses a right solution in .42 of groups, and the one that gives its "
    "verdict at once in .47. On chains of one step, the control, reasons lead by .08. Why, was not measured."
)
