"""Rewards: evaluators with evidence, scorers, and tasks whose attempts are judged one by one. No torch."""

import longstride.rewards.final_state  # noqa: F401 (an evaluator)
from longstride.rewards.attempts import Attempts
from longstride.rewards.duels import AgainstRivals, AskedPair, ByReward, Duels, InTurn, Preference
from longstride.rewards.evaluators import Verdict, judge
from longstride.rewards.probe import Probe, TaughtProbe
from longstride.rewards.scored_reward import ScoredReward
from longstride.rewards.scorers import Generative, Judge, Pairwise, Scorer
from longstride.rewards.task_reward import EvaluatorFirst, Reward, TaskReward, judged, unjudged

__all__ = [
    "AgainstRivals",
    "AskedPair",
    "Attempts",
    "ByReward",
    "Duels",
    "EvaluatorFirst",
    "Generative",
    "InTurn",
    "Judge",
    "Pairwise",
    "Preference",
    "Probe",
    "Reward",
    "ScoredReward",
    "Scorer",
    "TaskReward",
    "TaughtProbe",
    "Verdict",
    "judge",
    "judged",
    "unjudged",
]
