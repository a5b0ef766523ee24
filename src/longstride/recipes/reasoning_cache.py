"""Reasoning Cache: reason, summarise, forget, reason on from the summary. Wu et al., 2026, arXiv 2602.03773.

Each round reads the task and a summary, and what it thought is dropped but for the next summary. So the length that
is trained is that of a round, and how many rounds there are is free: what a round has to learn is to go on from where
it is. Training begins in states that the policy itself came to.

| place | choice | paper (table 5) and released code (4B) | here |
|---|---|---|---|
| plan | `SummaryStates` | 3 rounds explore, 2 of the states that they saw, 8 rollouts of a round from each | the same |
| plan | tasks | 64 an update | 16 |
| roll out | `Newest`, sampling | task and summary; temperature 1, at most 16,384 tokens | temperature 1, 48 tokens |
| roll out | summary | by the model itself, not trained | by rule: what is left of a chain, failed first moves of a Countdown |
| score | `TaskReward` | the answer of the round | the same |
| credit | `GroupRelative` | (r - mean) / deviation in the group of a state | the same, mixed groups only |
| update | `PPO` | clip 0.2 and 0.28, mean over tokens, KL 0.001 in the loss | the same, no KL |
| update | passes, rate | one in two steps, 1e-6 | as `grpo`: two, 3e-4 |
| test | rounds | 12 or 16, 32 for 512k tokens | 3, beside it 1, 8 and 12 |

Deviations: model and puzzles are those of `grpo`; the summariser is a rule, so that nothing but reasoning is learned,
and believes what the policy says: an answer that it wrongly calls found stands until a round says no; groups of one
outcome are left out, many of which begin in such a state; there is no second stage, with replay of earlier summaries.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.envs.puzzles import Iterated
from longstride.methods import PPO, GroupRelative, Mean
from longstride.recipes import grpo
from longstride.rollout.context import Newest
from longstride.rollout.states import SummaryStates
from longstride.run.recipe import Evaluation
from longstride.stats import Ordering
from longstride.strategies import Direct

ROUNDS = 3
"""Rounds that explore, and that are tested; none is trained beyond."""
TOKENS = 48
"""Sampled tokens of a round: six steps of a chain and the answer, or an attempt at a Countdown of four numbers and the
answer. The hardest tasks need several rounds."""

RECIPE = grpo.RECIPE.model_copy(
    update={
        "name": "reasoning_cache",
        "tasks": Iterated(),
        "sampler": SummaryStates(states=2),
        "budget": grpo.RECIPE.budget.model_copy(update={"turn_tokens": TOKENS}),
        "horizon": Fixed(limit=ROUNDS),
        "test_horizon": Fixed(limit=ROUNDS),
        "context": Newest(),
        "credit": GroupRelative(mixed_only=True),
        "loss": PPO(high=0.28, aggregation=Mean(over="token")),
        "evaluation": Evaluation(
            every=10, baselines=False, strategies=(Direct(), *(Direct(turns=n) for n in (1, 8, 12)))
        ),
    }
)

CLAIM = Claim(
    name="reasoning_cache",
    paper="arXiv 2602.03773, abstract",
    statement="What was trained in three rounds goes on rising in eight, above a long chain of thought that was trained "
    "with as many tokens in a round.",
    scale=("iterations=16", "episodes=128", "learner.batch_samples=64", "evaluation.every=16", "evaluation.tasks=600"),
    arms={
        "rounds": (),
        # answers are longer, so there are fewer: sampled tokens are about equal
        "long": ("sampler={type='groups'}", "horizon.limit=1", f"budget.turn_tokens={ROUNDS * TOKENS}", "episodes=72"),
        "untrained": ("learner.epochs=0", "iterations=1"),
        "one_round": ("tasks.puzzles={sources=[{type='modular_chain', lengths=[2, 2, 2]}]}",),
    },
    expected=Ordering(
        relations=(
            "rounds@direct_8_turns > rounds",
            "rounds@direct_8_turns > long@direct_8_turns",
            "rounds > long@direct_1_turns",
            "rounds@direct_8_turns > untrained@direct_8_turns",
        )
    ),
    # what is thought in one round needs no other
    control=Ordering(relations=("one_round@direct_8_turns > one_round by 0.03",)),
)
