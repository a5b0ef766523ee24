"""Progress: what further thought added to an answer that could have been given at once (MRT, arXiv 2503.07572).

A state is a task and what was thought about it so far. Some episodes of a state must answer at once (`FORCED`), the
others may go on (`GO_ON`); both are one `Trajectory.group`. What always holds: what an episode begins with, the words
that force the answer among it, is read and never trained; a trace that only led to the state (`TRACE`) is not trained.
No torch.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.core.trajectory import Trajectory
from longstride.methods.advantages import Centre, Scale, group_advantages, progress
from longstride.methods.base import Credit, Sample

TRACE, GO_ON, FORCED = "trace", "go_on", "forced"
"""What an episode was made for: `Trajectory.role`."""


class ProgressCredit(Credit):
    """MRT(RL): the outcome, and a bonus for what it is above that of answering at once from the same state.

    | role | weight of each sampled token |
    |---|---|
    | `trace` | not trained |
    | `forced` | A: the words of its answer |
    | `go_on` | A + `bonus` * (r - m), with m the mean reward of the state's forced episodes |

    A is the advantage among the state's episodes of the same role, which began with the same ids. Where no episode was
    forced there is no bonus, and this is `GroupRelative`. The sum is the paper's outcome plus bonus; the first release
    describes r - m in the place of A.

    Bias, as the tests measure it: m does not depend on what the episode itself says, so in expectation the bonus is a
    baseline. With `leave_one_out` and without a scale the gradient is exactly (1 + bonus) times that of the success of
    going on, plus that of the success of answering at once; with `mean` over n episodes of a role 1 becomes
    (n - 1) / n. It is not the gradient of outcome plus bonus: the paper holds the answer at once fixed, so
    -bonus times the gradient of its success is left out.
    """

    bonus: Annotated[float, Field(ge=0)] = 1.0
    """Weight of progress (alpha)."""
    centre: Centre = "mean"
    """Baseline of A; see `group_advantages`."""
    scale: Scale = "none"
    """Divisor of A; see `group_advantages`. The bonus is never divided."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        played = [t for t in trajectories if t.role != TRACE and not t.stop.failed]
        keys = [(t.group, t.role) for t in played]
        rewards: dict[tuple[int, str], list[float]] = {}
        for key, t in zip(keys, played, strict=True):
            rewards.setdefault(key, []).append(t.reward)
        numbers = {key: n for n, key in enumerate(rewards)}
        outcome_N = group_advantages(
            [t.reward for t in played], [numbers[key] for key in keys], self.centre, self.scale
        )
        samples = []
        for t, weight in zip(played, outcome_N.tolist(), strict=True):
            at_once = rewards.get((t.group, FORCED))
            if t.role != FORCED and at_once:
                weight += self.bonus * float(progress([fmean(at_once), t.reward])[0])
            samples += [Sample.of(t, turn, [weight] * len(turn.sampled_ids)) for turn in t.turns if turn.sampled_ids]
        return samples


def regret(tokens_T: Sequence[float], solved_T: Sequence[float], budget: float) -> float:
    """Normalised regret of a trace against one that is right from the first token on (arXiv 2503.07572; the
    release's `regret.ipynb`): 1 minus the mean height of its success curve up to the budget. The curve begins at 0,
    goes in straight lines from point to point and stays after the last.

    Args:
        tokens_T: how long the trace was at each point, ascending, above 0.
        solved_T: share of answers given there that were right.
        budget: tokens, above 0.

    Returns:
        In [0, 1].

    Raises:
        ValueError: lengths differ or are not ascending, or the budget is not positive.
    """
    x, y = np.array([0.0, *tokens_T]), np.array([0.0, *solved_T])
    if len(x) != len(y) or (np.diff(x) <= 0).any() or budget <= 0:
        raise ValueError(
            f"regret needs ascending tokens above 0, a success rate for each of them and a budget above 0; got "
            f"{list(tokens_T)}, {list(solved_T)}, {budget}"
        )
    within = x < budget
    return 1 - float(np.trapezoid(np.append(y[within], np.interp(budget, x, y)), np.append(x[within], budget)) / budget)
