"""LHF in corridors: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.papers.lhf.method import ImprovingAndStable
from longstride.run.histories import LearningHistories
from longstride.run.recipe import Recipe
from longstride.setups import trials
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.learners import AnyChoice, OneOf, PlayedBy, QLearning


def _noisy(share: float) -> OneOf:
    """Q-learning, and in so large a share of trials one who learns nothing."""
    return OneOf(learners=(AnyChoice(), QLearning()), weights=(share, 1 - share))


RECIPE = trials.recipe(
    "lhf",
    LearningHistories(learner=_noisy(0.5), filter=ImprovingAndStable()),
    tasks=trials.CORRIDORS,
    episodes=10,
    beside=(QLearning(), AnyChoice()),
)

ARM = RECIPE.replace(
    evaluation={"strategies": (Direct(), PlayedBy(learner=QLearning()))},
)


def _arm(share: float, filtered: bool) -> Recipe:
    histories = LearningHistories(learner=_noisy(share), filter=ImprovingAndStable() if filtered else None)
    return ARM.replace(cloning={"demonstrations": histories})


CLAIM = Claim(
    name="lhf",
    paper="arXiv 2505.15143, abstract",
    statement="Where half of the histories are of one who learns nothing, a policy trained on filtered histories earns more in its context than one "
    "trained on all of them, and the more of them there are the more.",
    recipe=ARM,
    arms={
        "filtered": ARM,
        "all": _arm(0.5, False),
        "filtered_75": _arm(0.75, True),
        "all_75": _arm(0.75, False),
        "filtered_0": _arm(0.0, True),
        "all_0": _arm(0.0, False),
    },
    measure="reward",
    expected=Ordering(relations=("filtered > all by 0.05",)),
    dose=("filtered_0 > all_0", "filtered > all", "filtered_75 > all_75"),
    reported=Ordering(relations=("filtered > filtered@q_learning",)),
    seeds=tuple(range(780, 788)),
    tuning_seeds=(900, 901),
    grid={"cloning.learner.lr": (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)},
    # half of the passes, and a cosine that ends with them: rates are ranked under the schedule of the whole
    tuning={"cloning.learner.epochs": 2, "cloning.learner.decay_steps": 625},
    # as many histories are imitated; in the iteration after that nothing is trained, and who gets farther takes more steps
    cost="iterations",
)
