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
