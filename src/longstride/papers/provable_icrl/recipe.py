"""An expert algorithm's labels on linear bandits, whoever played: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.hidden import LinearBandits
from longstride.run.histories import LearningHistories
from longstride.setups import trials
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.learners import AnyChoice, LinUCB, OneOf, PlayedBy, Thompson

RECIPE = trials.recipe(
    "provable_icrl",
    LearningHistories(learner=LinUCB(), labels=LinUCB()),
    tasks=LinearBandits(),
    beside=(LinUCB(), Thompson(), AnyChoice()),
)

ARM = RECIPE.replace(
    tasks={"arms": 6, "pulls": 5},
    evaluation={"strategies": (Direct(), PlayedBy(learner=LinUCB()), PlayedBy(learner=Thompson()))},
)


def _apart(share: float) -> dict[str, object]:
    """Trajectories of which so large a share was made by one who learns nothing."""
    learner = OneOf(learners=(AnyChoice(), LinUCB()), weights=(share, 1 - share))
    return {"cloning": {"demonstrations": {"learner": learner}}}


CLAIM = Claim(
    name="provable_icrl",
    paper="arXiv 2310.08566, abstract, and the released code",
    statement="A policy trained on LinUCB's labels of LinUCB's own trajectories earns more than one trained on its labels of trajectories of one "
    "who learns nothing, and by the more the larger their share.",
    recipe=ARM,
    arms={
        "matched": ARM,
        "half": ARM.replace(**_apart(0.5)),
        "nine_tenths": ARM.replace(**_apart(0.9)),
        "apart": ARM.replace(**_apart(1.0)),
    },
    measure="reward",
    expected=Ordering(relations=("matched > apart by 0.15",)),
    dose=("matched > half", "matched > nine_tenths", "matched > apart"),
    reported=Ordering(relations=("matched > matched@lin_ucb", "matched > matched@thompson")),
    scale=(0.0, 5.0),
    seeds=tuple(range(770, 778)),
    tuning_seeds=(900, 901),
    grid={"cloning.learner.lr": (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)},
    # half of the passes, and a cosine that ends with them: rates are ranked under the schedule of the whole
    tuning={"cloning.learner.epochs": 2, "cloning.learner.decay_steps": 625},
    cost="env_steps",
)
