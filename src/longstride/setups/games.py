"""The setup of recipes on text games, in which a scripted oracle answers: a maze whose cells look alike, and by a
setting the same with coordinates, Wordle or twenty questions.

What is stored to learn from is what a start plays that was shown a little of the solver and has not understood it. So a
run has one iteration: all is collected, and then learnt from.

| game | change of a recipe |
|---|---|
| the twin that is fully observed | `tasks={"fully_observed": True}` |
| Wordle | `WORDLE` |
| twenty questions | `QUESTIONS` |
"""

from typing import Any

from longstride.curriculum import BudgetSchedule
from longstride.envs.puzzles import TextMaze, TwentyQuestions, Wordle
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import CriticConfig
from longstride.methods import Credit, Loss, OnPolicy
from longstride.rewards import TaskReward
from longstride.rollout.context import FullHistory
from longstride.run.imitation import Cloning
from longstride.run.recipe import Evaluation, Recipe
from longstride.setups.small import FAST

TURNS = 24
"""Steps in the maze: half as many again as the longest shortest way takes."""
_wordle, _questions = {"turns": 8, "turn_tokens": 7}, {"turns": 5, "turn_tokens": 8}
WORDLE = {"tasks": Wordle(), "budget": _wordle, "test_budget": _wordle}
"""Six guesses, and two turns that are none."""
QUESTIONS = {
    "model": "base-puzzles",
    "tasks": TwentyQuestions(sizes=(4, 6, 8), questions=4),
    "budget": _questions,
    "test_budget": _questions,
}
"""Four questions, as many as eight numbers need, and a turn that is none."""


def recipe(name: str, credit: Credit, loss: Loss, critic: CriticConfig | None = None, **changes: Any) -> Recipe:
    """A recipe on the maze, with changes as `Component.replace` takes them."""
    return Recipe(
        name=name,
        iterations=1,
        episodes_per_iteration=1024,
        model="base-trials",
        cloning=Cloning(episodes=300, learner=LearnerConfig(lr=1e-3, epochs=3, batch_samples=64).replace(**FAST)),
        tasks=TextMaze(size=3),
        budget=BudgetSchedule(turns=TURNS, turn_tokens=4),
        test_budget=BudgetSchedule(turns=TURNS, turn_tokens=4),
        context=FullHistory(),
        reward=TaskReward(),
        replay=OnPolicy(),
        credit=credit,
        loss=loss,
        critic=critic,
        learner=LearnerConfig(lr=3e-4, warmup_steps=5, epochs=2, batch_samples=256).replace(**FAST),
        evaluation=Evaluation(tasks=300, baselines=False),
    ).replace(engine={"processes": "auto"}, **changes)
