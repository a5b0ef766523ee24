"""Reasoning Cache: reason, summarise, forget, reason on from the summary. Wu et al., 2026, arXiv 2602.03773.

Each round reads the task and a summary, and what it thought is dropped but for the next summary. So the length that
is trained is that of a round, and how many rounds there are is free: what a round has to learn is to go on from where
it is. Training begins in states that the policy itself came to.

| place | choice | paper (table 5) and released code (4B) | here |
|---|---|---|---|
| plan | `SummaryStates` | 3 rounds explore, 2 of the states that they saw, 8 rollouts of a round from each | the same |
| plan | tasks | 64 an update | 16 |
| roll out | `LatestObservation`, sampling | task and summary; temperature 1, at most 16,384 tokens | temperature 1, 48 tokens |
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
from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Iterated, Puzzles
from longstride.methods import PPO, GroupRelative, Mean
from longstride.recipes.setups import puzzles
from longstride.recipes.setups.puzzles import ALIKE
from longstride.rollout.context import LatestObservation
from longstride.rollout.planning import Groups, Planner, Sampler, Stages
from longstride.stats import Ordering
from longstride.strategies import Direct


class SummaryStates(Sampler):
    """One episode of a task explores, under the recipe's horizon; then a group of one turn each begins in some of the
    states that it saw, the start among them: training on one round of an iterated decoder.

    A group has one task and one state, so that what is compared began alike; a state is what an episode of the same
    iteration saw before one of its turns, and nothing else of that episode is left. For environments in which a task's
    `start` is an observation to begin with (`envs.puzzles.Iterated`).
    """

    states: Count = 2
    """Most states of a task, drawn without replacement (N_summ = 2 in the paper)."""

    def plan(self, planner: Planner) -> Stages:
        tasks = planner.tasks(max(1, planner.groups // self.states))
        explored = yield [plan for task in tasks for plan in planner.group(task, 1, role="explore")]
        starts = [start for t in explored if not t.stop.failed for start in self._starts(t, planner)]
        return explored + (yield [plan for task in starts for plan in planner.group(task, role="step")])

    def _starts(self, trajectory: Trajectory, planner: Planner) -> list[Task]:
        """The task of an episode, to be begun in states that it saw and to be ended after a turn."""
        seen = list(dict.fromkeys(turn.observation for turn in trajectory.turns))
        chosen = planner.rng.sample(seen, min(self.states, len(seen)))
        task = trajectory.task
        return [task.model_copy(update={"start": state or task.start, "horizon": 1}) for state in chosen]


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
    credit=GroupRelative(drop_zero_variance=True),
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
