"""Reasoning Cache on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Iterated, Puzzles
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.reasoning_cache.method import SummaryStates
from longstride.rollout.context import LatestObservation
from longstride.rollout.planning import Groups
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering
from longstride.strategies import Direct

ROUNDS = 3
"""Rounds that explore, and that are tested; none is trained beyond."""
TOKENS = 48
"""Sampled tokens of a round: six steps of a chain and the answer, or an attempt at a Countdown of four numbers and the
answer. The hardest tasks need several rounds."""

RECIPE = puzzles.recipe(
    "reasoning_cache",
    tasks=Iterated(),
    sampler=SummaryStates(states=2),
    budget={"turns": ROUNDS, "turn_tokens": TOKENS},
    test_budget={"turns": ROUNDS, "turn_tokens": TOKENS},
    context=LatestObservation(),
    replay=MixedGroups(),
    credit=GroupRelative(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
    evaluation={"strategies": (Direct(), *(Direct(turns=n) for n in (1, 8, 12)))},
)

ARM = puzzles.arm(RECIPE, tasks=600)
_long = {"turns": 1, "turn_tokens": ROUNDS * TOKENS}

CLAIM = Claim(
    name="reasoning_cache",
    paper="arXiv 2602.03773, abstract",
    statement="What was trained in three rounds goes on rising in eight, above a long chain of thought that was trained "
    "with as many tokens in a round.",
    recipe=ARM,
    arms={
        "rounds": ARM,
        # answers are longer, so there are fewer: sampled tokens are about equal
        "long": ARM.replace(
            sampler=Groups(),
            budget=_long,
            test_budget={"turn_tokens": ROUNDS * TOKENS},
            episodes_per_iteration=72,
        ),
        "untrained": ARM.replace(learner={"epochs": 0}, iterations=1),
        "one_round": ARM.replace(tasks={"puzzles": Puzzles(sources=(ALIKE,))}),
    },
    expected=Ordering(relations=("rounds@direct_8_turns > rounds",)),
    # what is thought in one round needs no other
    control=Ordering(relations=("one_round@direct_8_turns > one_round by 0.03",)),
    reported=Ordering(
        relations=(
            "rounds@direct_8_turns > long@direct_8_turns",
            "rounds > long@direct_1_turns",
            "rounds@direct_8_turns > untrained@direct_8_turns",
        )
    ),
)
