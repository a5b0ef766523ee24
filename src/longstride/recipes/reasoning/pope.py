"""POPE: privileged on-policy exploration. Qu, Setlur et al., 2026, "POPE: Learning to Reason on Hard Problems via
Privileged On-Policy Exploration", arXiv 2601.18779.

Where no rollout succeeds there is nothing to learn from. There the policy is shown the beginning of a solution and goes
on from it; what it learns from that place on serves it when it comes near there by itself. The solution is never
imitated: it is read, and what the policy says after it is trained.

| place | choice | paper; (c): code of its authors (Qwen3-4B-Instruct) | here |
|---|---|---|---|
| plan | tasks | no success in 128 rollouts of 32k tokens | Countdown of four numbers: 3 % of rollouts succeed |
| plan | `OraclePrefix` | shortest of the beginnings, up to a quarter of the solution, with a success in 8 | up to two of its three steps, a success in 8 |
| plan | guided to unguided | each hard problem in both forms, 1:1 | the same, as long as it is hard |
| roll out | sampling | temperature 0.8, 16,384 tokens (c) | temperature 1, 160 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `GroupRelative`, mixed groups only | GRPO; groups of 4 or 8, r - mean (c) | groups of 8, divided by the deviation |
| update | `PPO` | REINFORCE with a capped ratio, 1e-6, clipped at 0.3 (c) | 5e-4, clipped at 1, steps of 48 episodes: few groups are mixed |

Deviations: the beginning stands on the policy's side, as if it had sampled it, and not in the prompt with the instruction
to study it and to go on: a model of half a million parameters follows no instructions. So a guided episode stands
exactly where an unguided one would that had begun like that, which is the overlap that the paper explains its transfer
by; and so a solution has to be spelled as the policy spells its own. A task is hard when a group of 8 has no success,
which says less than 128 rollouts. Beginnings are looked for in every iteration, as tasks are drawn afresh, by the
policy as it is, and where none leads to a success the task teaches nothing; the paper looks once, by the base model,
and then takes the quarter. A task that was solved without guidance is not guided. A solution has three steps here, and
each is a choice, so the share that is shown is larger.

How the paper looks for beginnings is from notes on it. (c) is the default configuration for POPE in ars22/pipeline-rl,
of some months before the paper; the settings of the paper itself could not be checked.
"""

from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Share
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Mix, Solver
from longstride.envs.puzzles import Countdown
from longstride.methods import PPO, GroupRelative, Mean
from longstride.models.chat import ChatFormat
from longstride.recipes.setups import puzzles
from longstride.rollout.branching import STEP, cuts
from longstride.rollout.planning import Groups, Planner, Sampler, Stages, by_group
from longstride.stats import Ordering

GUIDED = "guided"
"""Role of an episode that begins with a part of a solution."""


class OraclePrefix(Sampler):
    """A task of which no episode succeeds is played again from the beginning of a solution, as short a beginning as leads
    to a success.

    Beginnings are tried from the shortest on, a group each, until a group has a success; that group is the guided one,
    and those before it teach nothing (all their rewards are equal). So the search costs no episodes beside those that
    are trained on, but for its failures.
    """

    share: Share = Field(default=0.25, gt=0, lt=1)
    """Largest part of the solution's steps that is shown."""
    checkpoints: Count = 4
    """How many beginnings there are, uniformly spaced up to `share`; fewer where the solution is short."""
    mark: str = STEP
    """The token that divides the steps of a solution."""
    unguided: bool = True
    """Whether tasks are played without guidance first; if not, every task is guided."""

    def plan(self, planner: Planner) -> Stages:
        source = planner.source
        if not isinstance(source, Solver):
            raise ConfigError(
                f"sampler {self.type_name()} shows the beginning of a solution, and tasks {source.type_name()} know "
                "none (they have no `demonstrate`); take modular_chain or countdown"
            )
        played: list[Trajectory] = []
        tasks = planner.tasks(planner.groups)
        if self.unguided:
            played += yield [plan for task in tasks for plan in planner.group(task)]
            tasks = [group[0].task for group in by_group(played) if not any(t.success for t in group)]
        unsolved = [(task, self.beginnings(planner.chat, source.demonstrate(task)[0])) for task in tasks]
        for n in range(self.checkpoints):
            unsolved = [(task, shown) for task, shown in unsolved if n < len(shown)]
            groups = [planner.group(task, prefix=shown[n], role=GUIDED) for task, shown in unsolved]
            if not groups:
                break
            found = yield [plan for group in groups for plan in group]
            played += found
            solved = {t.group for t in found if t.success}
            unsolved = [u for u, group in zip(unsolved, groups, strict=True) if group[0].group not in solved]
        return played

    def beginnings(self, chat: ChatFormat, solution: str) -> list[list[int]]:
        """The ids of the beginnings of a solution that may be shown, the shortest first: whole steps, never all."""
        ids = chat.encode(solution)
        ends = cuts(chat, ids, (self.mark,))
        wanted = {
            max(1, round(self.share * (len(ends) + 1) * n / self.checkpoints)) for n in range(1, self.checkpoints + 1)
        }
        return [ids[: ends[steps - 1]] for steps in sorted(wanted) if steps <= len(ends)]


RECIPE = puzzles.recipe(
    "pope",
    iterations=40,
    episodes_per_iteration=128,
    tasks=Countdown(largest=10, most=30, mix=Mix(easy=0, medium=0, hard=1)),
    sampler=OraclePrefix(share=0.7, checkpoints=2),
    credit=GroupRelative(drop_zero_variance=True),
    loss=PPO(aggregation=Mean(over="episode")),
    learner={"lr": 5e-4, "batch_samples": 48},
    evaluation={"tasks": 300},
)


def _mix(easy: int, hard: int) -> dict[str, Mix]:
    """The change of `tasks` to shares of easy and hard tasks in training."""
    return {"mix": Mix(easy=easy, medium=0, hard=hard)}


ARM = RECIPE.replace(iterations=10, evaluation={"every": 10, "samples": 4})
PLAIN = ARM.replace(sampler=Groups())
"""No guidance."""

# arms without guidance, or with nothing else, play more groups an iteration: sampled tokens are about equal
CLAIM = Claim(
    name="pope",
    paper="arXiv 2601.18779",
    statement="Guided and unguided hard tasks together solve held-out hard tasks that neither alone, nor easy tasks "
    "beside them, make solvable.",
    recipe=ARM,
    arms={
        "pope": ARM,
        "guided_only": ARM.replace(sampler={"unguided": False}, episodes_per_iteration=200),
        "hard_only": PLAIN.replace(episodes_per_iteration=280),
        "hard_and_easy": PLAIN.replace(episodes_per_iteration=464, tasks=_mix(1, 1)),
        "easy_pope": ARM.replace(tasks=_mix(1, 0)),
        "easy_only": PLAIN.replace(tasks=_mix(1, 0)),
    },
    measure="success_hard",
    expected=Ordering(relations=("pope > hard_only by 0.02",)),
    # what is solved without guidance is not guided
    control=Ordering(relations=("easy_pope > easy_only by 0.02",)),
    reported=Ordering(relations=("pope > guided_only", "guided_only > hard_only", "pope > hard_and_easy")),
    seeds=(20, 21, 22),
)
