"""J1's measure for a language model: a verdict on a pair that holds in both orders."""

from collections.abc import Sequence
from dataclasses import replace

from longstride.envs.judgements import swapped
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy, further_plan


class BothOrders(Strategy):
    """Pairs are judged a second time with their solutions in the other order. Measures: `consistent`, whether the verdict
    is right in both; `first`, whether the first verdict is `first`, which half of all are for a judge that likes no place.
    """

    @property
    def name(self) -> str:
        return "both_orders"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: TaskError where a task is about no pair."""
        again = [replace(further_plan(p, 0), task=swapped(p.task)) for p in plans]
        found = yield [*plans, *again]
        return [
            EvalEpisode(
                one,
                {"consistent": float(one.success and other.success), "first": float(one.answer == "first")},
                other.sampled_tokens,
            )
            if not other.stop.failed
            else EvalEpisode(one, {"consistent": None, "first": None})
            for one, other in zip(found[: len(plans)], found[len(plans) :], strict=True)
        ]
