"""Rewards: evaluators with evidence. No torch."""

from longstride.rewards.evaluators import Verdict, judge
from longstride.rewards.task_reward import EvaluatorFirst, Reward, TaskReward, judged, unjudged

__all__ = ["EvaluatorFirst", "Reward", "TaskReward", "Verdict", "judge", "judged", "unjudged"]
