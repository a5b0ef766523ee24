"""Rewards: evaluators with evidence. No torch."""

from longstride.rewards.evaluators import Verdict, judge
from longstride.rewards.judged import JudgedReward
from longstride.rewards.judges import OpenAIJudge
from longstride.rewards.task_reward import Reward, TaskReward

__all__ = ["JudgedReward", "OpenAIJudge", "Reward", "TaskReward", "Verdict", "judge"]
