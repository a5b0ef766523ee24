"""What an episode in a world with a hidden rule is measured by."""

from longstride.core.trajectory import Trajectory
from longstride.envs.hidden import rule_of
from longstride.rollout.summary import Measure


class Regret(Measure):
    """What an episode earned less than who knows the rule earns in the mean; of a bandit by the chances of the arms
    that were pulled, whatever they happened to pay (`envs.hidden.Rule.regret`)."""

    def __call__(self, trajectory: Trajectory) -> float | None:
        rule = rule_of(trajectory.task)
        return rule and rule.regret(trajectory)


class ShareOfMost(Measure):
    """What an episode earned, by what who knows the rule earns in the mean; luck may bring more than 1. So worlds are
    compared that pay differently, such as 1 for a corridor and several for a dark room."""

    def __call__(self, trajectory: Trajectory) -> float | None:
        rule = rule_of(trajectory.task)
        return trajectory.earned / rule.most if rule and rule.most else None
