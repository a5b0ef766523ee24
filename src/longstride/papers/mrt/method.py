"""Episodes that must answer in the middle of a thought, and credit for progress beyond such an answer."""

from collections.abc import Sequence
from math import exp
from statistics import fmean, pstdev
from typing import Annotated

from pydantic import Field

from longstride.core.numbers import Count, Share, Weight
from longstride.core.trajectory import Trajectory
from longstride.envs.text import ANSWERING, MARK, STEP_END
from longstride.methods import Advantage, Credit, group_advantages
from longstride.methods.advantages import EQUAL, Baseline, Normalize
from longstride.rewards import TaskReward, Verdict
from longstride.rollout.branching import answer_plan, check_single_turn, cuts
from longstride.rollout.planning import Planner, Sampler, Stages

TRACE, GO_ON, FORCED = "trace", "go_on", "forced"
"""`Trajectory.role`: a trace led to a state (task and thought so far), whose episodes go on or must answer at once."""


class ForcedTermination(Sampler):
    """The policy's own thought about each task is cut at a random place, and a group begins there of which a part must
    answer at once.

    The trace is an episode of its own. The places are its start and all marks, equally likely.
    """

    forced: Share = Field(default=0.5, gt=0)
    """Part of a group that must answer at once; the rest may go on."""
    everywhere: bool = False
    """Whether groups begin at all places of a trace, as in the paper's online release."""
    longest: Count = 16
    """Tokens of an answer at once: five numbers of a Countdown in brackets, and no room to think on."""
    marks: tuple[str, ...] = (STEP_END, MARK)
    """The words before which a thought may be cut: what divides its steps, and what begins an answer."""
    closing: Annotated[str, Field(min_length=1)] = ANSWERING
    """The words that ask for an answer where a thought is cut."""

    def plan(self, planner: Planner) -> Stages:
        plans = [plan for task in planner.tasks(planner.groups) for plan in planner.group(task, 1, role=TRACE)]
        check_single_turn(plans, "forced_termination cuts thoughts")
        traces = yield plans
        closing = tuple(planner.chat.encode(self.closing))
        plans = []
        for trace in traces:
            thought = trace.turns[0].ids if trace.turns else []
            places = [0, *cuts(planner.chat, thought, self.marks)]
            for place in places if self.everywhere else [planner.rng.choice(places)]:
                group = planner.group(trace.task, prefix=thought[:place], role=GO_ON, like=trace)
                forced = round(self.forced * len(group))
                # an action from the same state, so it is compared with those that go on from there
                plans += [answer_plan(plan, plan.prefix + closing, self.longest, FORCED) for plan in group[:forced]]
                plans += group[forced:]
        return traces + (yield plans)


class ProgressCredit(Credit):
    """MRT(RL): the outcome, and a bonus for what it is above that of answering at once from the same state.

    | role | advantage of each sampled token |
    |---|---|
    | `trace` | not trained |
    | `forced` | A: the words of its answer |
    | `go_on` | A + `bonus` * (r - m), with m the mean reward of the state's forced episodes |

    A is the advantage among the state's episodes of the same role, which began with the same ids. Where no episode was
    forced there is no bonus, and this is `GroupRelative`. The sum is the paper's outcome plus bonus; the first release
    describes r - m in the place of A.

    Bias, as the tests measure it: m does not depend on what the episode itself says, so in expectation the bonus is a
    baseline. With `leave_one_out` and without a scale the gradient is exactly (1 + bonus) times that of the success of
    going on, plus that of the success of answering at once; with `mean` over n episodes of a role 1 becomes (n - 1) / n.
    As the paper holds the answer at once fixed, -bonus times the gradient of its success is left out.
    """

    bonus: Weight = 1.0
    """Weight of progress (alpha)."""
    baseline: Baseline = "mean"
    """Baseline of A; see `group_advantages`."""
    normalize: Normalize = "none"
    """Divisor of A; see `group_advantages`. The bonus is never divided."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        compared = [t for t in played if t.role != TRACE]
        rewards: dict[tuple[int, str], list[float]] = {}
        for t in compared:
            rewards.setdefault((t.group, t.role), []).append(t.reward)
        groups_N = [list(rewards).index((t.group, t.role)) for t in compared]
        outcomes = iter(
            group_advantages([t.reward for t in compared], groups_N, self.baseline, self.normalize).tolist()
        )

        def advantage(t: Trajectory) -> Advantage:
            if t.role == TRACE:
                return None
            outcome, at_once = next(outcomes), rewards.get((t.group, FORCED))
            return outcome if t.role == FORCED or not at_once else outcome + self.bonus * (t.reward - fmean(at_once))

        return [[advantage(t)] * t.length for t in played]


class LengthPenalty(TaskReward):
    """A right answer earns more the shorter it is beside the other right answers of its group: r (1 - weight *
    sigmoid(z)), where z is how many deviations it is longer than their mean, in sampled tokens (Arora and Zanette, 2025,
    arXiv 2502.04463). A wrong answer earns what it did, so brevity is never bought with one."""

    weight: Share = 0.2
    """Largest share of its reward that a success loses (alpha)."""

    def compare(self, group: Sequence[Trajectory]) -> list[Verdict]:
        lengths, verdicts = [t.sampled_tokens for t in group if t.success], []
        deviation = pstdev(lengths) if lengths else 0.0
        for t in group:
            z = (t.sampled_tokens - fmean(lengths)) / deviation if t.success and deviation >= EQUAL else 0.0
            reward = t.reward * (1 - self.weight * (1 / (1 + exp(-z))) * t.success)
            verdicts.append(Verdict(reward - t.earned, t.success, t.terms, t.evidence))
        return verdicts
