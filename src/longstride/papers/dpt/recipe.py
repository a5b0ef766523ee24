"""DPT on bandits: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.papers.dpt.method import FixedDraw
from longstride.run.histories import LearningHistories
from longstride.setups import trials
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.learners import GreedyMean, Optimal, PlayedBy, Thompson

RECIPE = trials.recipe("dpt", LearningHistories(learner=FixedDraw(), labels=Optimal()))

ARM = RECIPE.replace(
    tasks={"arms": 3, "pulls": 5},
    evaluation={"strategies": (Direct(), PlayedBy(learner=Thompson()), PlayedBy(learner=GreedyMean()))},
)
_expert = {"cloning": {"demonstrations": {"learner": Optimal()}}}
_distilled = {"cloning": {"demonstrations": LearningHistories()}}
_blind = {"context": {"turn": "0"}}

CLAIM = Claim(
    name="dpt",
    paper="arXiv 2306.14892, abstract, and the released code",
    statement="From as many labels, a policy that was told the best action beside what anyone did earns more in trials of its own "
    "than one that was told it beside what the best player did.",
    recipe=ARM,
    arms={
        "dpt": ARM,
        "expert": ARM.replace(**_expert),
        "distilled": ARM.replace(**_distilled),
        "blind_dpt": ARM.replace(**_blind),
        "blind_expert": ARM.replace(**_blind, **_expert),
    },
    measure="reward",
    expected=Ordering(relations=("dpt > expert by 0.25",)),
    # where no reward is read there is nothing to learn from
    control=Ordering(relations=("blind_dpt > blind_expert by 0.25",)),
    dose=("dpt > expert in reward@1", "dpt > expert in reward@2", "dpt > expert in reward@6"),
    reported=Ordering(relations=("dpt > distilled", "dpt > dpt@thompson", "dpt > dpt@greedy_mean")),
    scale=(0.0, 5.0),
    seeds=tuple(range(760, 768)),
    tuning_seeds=(900, 901),
    grid={"cloning.learner.lr": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)},
    tuning={"cloning.learner.epochs": 2},
    cost="env_steps",
)
