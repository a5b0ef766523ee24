"""Tic-tac-toe of TextArena against a player of random moves, trained with REINFORCE.

    longstride train examples/textarena_tictactoe.py model=Qwen/Qwen3-0.6B

The rules of the game are the goal, its messages are the observations, and the move is what follows `Action:`
(`Action: [4]`). The game's reward comes with the last turn: 1 for a win, 0 for a draw, -1 for a defeat or an invalid
move. `Greedy` is a rule of one's own for the other side: it takes the centre, then a corner. A game for one player
needs no `opponent` (`Textarena(id="GuessTheNumber-v0")`). To play against another model, leave `opponent` out and give
the recipe `companions={"opponent": Companion(model="Qwen/Qwen3-0.6B", context=FullHistory())}`.
"""

import random
from collections.abc import Sequence

from longstride.adapters.seeded import EnvironmentReward
from longstride.adapters.textarena import Opponent, RandomMove, Textarena
from longstride.curriculum import BudgetSchedule
from longstride.learner.config import LearnerConfig
from longstride.methods import GroupRelative, OnPolicy
from longstride.rollout import FullHistory
from longstride.run.recipe import Evaluation, Recipe


class Greedy(Opponent):
    """The centre, then a corner, then any field that is free."""

    def move(self, seen: Sequence[str], rng: random.Random) -> str:
        free = seen[-1].rpartition("Available Moves:")[2]
        wanted = [move for move in ("[4]", "[0]", "[2]", "[6]", "[8]") if move in free]
        return wanted[0] if wanted else RandomMove().move(seen, rng)


RECIPE = Recipe(
    name="textarena_tictactoe",
    iterations=50,
    episodes_per_iteration=128,
    group_size=8,
    model="Qwen/Qwen3-0.6B",
    tasks=Textarena(id="TicTacToe-v0", players=2, opponent=RandomMove()),
    budget=BudgetSchedule(turns=6, turn_tokens=64),
    test_budget=BudgetSchedule(turns=6, turn_tokens=64),
    context=FullHistory(),
    reward=EnvironmentReward(),
    replay=OnPolicy(),
    credit=GroupRelative(),
    learner=LearnerConfig(lr=1e-5, warmup_steps=5),
    evaluation=Evaluation(tasks=64, every=10, reward=EnvironmentReward()),
)
