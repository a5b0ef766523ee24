"""Questions and answers from a file of JSON lines, trained with GRPO against the number in the answer.

    longstride train examples/dataset_shopping.py model=Qwen/Qwen3-0.6B

A row of `data/shopping.jsonl` is `{"question": "...", "answer": "7 + 5 = 12 #### 12"}`. What the model says after its
last `Answer:` is compared with the last number of the reference. A tenth of the questions is held out, by the hash of
the question. The reference is a reply too, so the model can be trained on the rows before any reinforcement learning:

    longstride train examples/dataset_shopping.py cloning.episodes=200

`Brief` is a reward of one's own: the task's verdict, and a little less for a long reply. Success is the verdict's.
"""

from pathlib import Path
from typing import Any

from longstride.adapters.dataset import Dataset
from longstride.core.numbers import Weight
from longstride.core.trajectory import Trajectory
from longstride.curriculum import BudgetSchedule
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, OnPolicy
from longstride.rewards import Reward, TaskReward, Verdict
from longstride.rollout import FullHistory
from longstride.run.recipe import Evaluation, Recipe


class Brief(Reward):
    """The task's own verdict, less what the reply costs."""

    cost: Weight = 0.001
    """What a sampled token costs."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        verdict = TaskReward()(trajectory, state, seed)
        cost = self.cost * trajectory.sampled_tokens
        terms = {"right": verdict.reward, "cost": cost}
        return Verdict(verdict.reward - cost, verdict.success, terms, verdict.evidence)


RECIPE = Recipe(
    name="dataset_shopping",
    iterations=50,
    episodes_per_iteration=128,
    group_size=8,
    model="Qwen/Qwen3-0.6B",
    tasks=Dataset(
        path=Path(__file__).parent / "data" / "shopping.jsonl", prompt="question", match="number", mark="Answer:"
    ),
    budget=BudgetSchedule(turns=1, turn_tokens=256),
    test_budget=BudgetSchedule(turns=1, turn_tokens=256),
    context=FullHistory(),
    reward=Brief(),
    replay=OnPolicy(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    learner=LearnerConfig(lr=1e-5, warmup_steps=5),
    evaluation=Evaluation(tasks=5, every=10),
)
