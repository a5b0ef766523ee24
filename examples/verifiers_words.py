"""A taskset of the verifiers library, trained with GRPO on its own rewards.

    pip install 'longstride[verifiers]'
    longstride train examples/verifiers_words.py model=Qwen/Qwen3-0.6B

`Verifiers` finds an environment by its name, as the library does: an installed package (`id="primeintellect/gsm8k"`),
or a module on Python's path, such as this file. The prompt is the goal, and the sum of the weighted rewards is the
reward, with its parts in the metrics. An environment that talks back (an `Env` with `agents.x.interaction(task)`) has
an observation for each of its messages. Up to verifiers 0.3, environments with a rubric (`vf.load_environment`) are
played in the same way.
"""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]

from longstride.adapters.seeded import EnvironmentReward
from longstride.adapters.verifiers import Verifiers
from longstride.curriculum import BudgetSchedule
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, OnPolicy
from longstride.rollout import FullHistory
from longstride.run.recipe import Evaluation, Recipe


class LetterData(vf.TaskData):
    letter: str


class LetterTask(vf.Task[LetterData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def has_letter(self, trace: vf.Trace) -> float:
        return float(self.data.letter in trace.last_reply)

    @vf.reward(weight=0.2)
    async def one_word(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply.split()) == 1)


class Letters(vf.Taskset[LetterTask, vf.TasksetConfig]):
    def load(self):
        for letter in "abcdefghiklmnoprstuvw":
            yield LetterTask(LetterData(prompt=f"Say one word with {letter}.", letter=letter), self.config.task)


__all__ = ["Letters"]
REWARD = EnvironmentReward(success_above=1.1)

RECIPE = Recipe(
    name="verifiers_words",
    iterations=20,
    episodes_per_iteration=128,
    group_size=8,
    model="Qwen/Qwen3-0.6B",
    tasks=Verifiers(id="verifiers_words", test_share=0.2),
    budget=BudgetSchedule(turns=1, turn_tokens=64),
    test_budget=BudgetSchedule(turns=1, turn_tokens=64),
    context=FullHistory(),
    reward=REWARD,
    replay=OnPolicy(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    learner=LearnerConfig(lr=1e-5, warmup_steps=5),
    evaluation=Evaluation(tasks=4, every=5, reward=REWARD),
)
