"""SPCT on pairs of solutions that a policy wrote: a judge learns by rejection, then by RL, to score both, and its scores are
summed over several judgements.

With your own: `longstride train spct model=MODEL tasks.path=solutions.jsonl cloning=`, see docs/guides/judge.md.
"""

from longstride.claims.claim import Claim
from longstride.envs.judgements import Judgements
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, PPO, FilteredBC, GroupRelative, Mean, MixedGroups, Reinforce
from longstride.papers.spct.method import Voted
from longstride.run.imitation import Cloning
from longstride.run.recipe import ObjectivePhase
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

VOTED = Voted(votes=8)
FILTERED = VOTED.replace(filtered_by="base-judge")

RL = ObjectivePhase(
    after=4,
    credit=GroupRelative(),
    loss=PPO(kl=KL(coefficient=0.08), aggregation=Mean(over="token")),
)

RECIPE = puzzles.recipe(
    "spct",
    # rejective fine-tuning: right judgements, of items on which not all are right (equation 10)
    credit=FilteredBC(),
    loss=Reinforce(),
    replay=MixedGroups(by="success"),
    iterations=12,
    episodes_per_iteration=128,
    group_size=4,
    model="base-judge",
    tasks=Judgements(asks="scores"),
    cloning=Cloning(episodes=3000, learner=LearnerConfig(lr=2e-3, batch_samples=64)),
    objectives=(RL,),
    learner={"lr": 5e-4, "batch_samples": 64},
    evaluation={"tasks": 100, "every": 12, "strategies": (Direct(), VOTED, FILTERED)},
)

ARM = RECIPE.replace(evaluation={"strategies": (VOTED, FILTERED, Direct())})

ONCE = ARM.replace(tasks={"puzzles": {"type": "modular_chain", "lengths": (1, 1, 1)}}, evaluation={"tasks": 80})

CLAIM = Claim(
    name="spct",
    paper="arXiv 2504.02495, section 5.2",
    statement="The sum of eight judgements of a judge that RL went on with is right more often than that of one which learned "
    "by rejection alone, from as many judgements.",
    recipe=ARM,
    arms={
        "tuned": ARM,
        "rejective": ARM.replace(objectives=()),
        # a rate that is not in the grid, so that it is not tuned: nothing is learned
        "cloned": ARM.replace(objectives=(), learner={"epochs": 0, "lr": 3e-4}),
        "once_tuned": ONCE,
        "once_rejective": ONCE.replace(objectives=()),
    },
    measure="voted",
    expected=Ordering(relations=("tuned > rejective by 0.02",)),
    # one step a chain: nothing is left to be read better, or by more
    control=Ordering(relations=("once_tuned > once_rejective by 0.02",)),
    reported=Ordering(
        relations=(
            f"tuned@{FILTERED.name} > tuned",
            "rejective > cloned",
            "tuned > cloned",
            "tuned > cloned in success",
        )
    ),
    seeds=tuple(range(390, 398)),
    tuning_seeds=(960, 961),
    grid={"learner.lr": (1e-4, 2e-4, 5e-4, 1e-3, 2e-3)},
    # ranked by what is judged: the first strategy
    tuning={"iterations": 8, "evaluation.strategies": [VOTED.as_data()]},
    cost="env_steps",
)
