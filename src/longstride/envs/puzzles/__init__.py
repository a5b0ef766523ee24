"""Puzzles: small text environments with exact verifiers and a knob for difficulty.

`Countdown`, `Facts`, `ModularChain`, `Moderation`, `Sudoku`, `LayeredPath`, `Mastermind`, `TextMaze`, `Vaults`,
`TwentyQuestions`, `Wordle` and `ReasoningGym` are task sources, `Puzzles` mixes several; under `rewards.Attempts`
they are attempted again, under `Corrected` after what a verifier said, under `Iterated` thought about in rounds.
No torch.
"""

from longstride.envs.puzzles.base import Game, Puzzle, PuzzleEnv, PuzzleSource
from longstride.envs.puzzles.corrected import Corrected
from longstride.envs.puzzles.countdown import Countdown
from longstride.envs.puzzles.facts import Facts
from longstride.envs.puzzles.iterated import Iterated
from longstride.envs.puzzles.mastermind import Mastermind
from longstride.envs.puzzles.maze import TextMaze
from longstride.envs.puzzles.mixture import Puzzles
from longstride.envs.puzzles.modular import ModularChain
from longstride.envs.puzzles.paths import LayeredPath
from longstride.envs.puzzles.reasoning_gym import ReasoningGym
from longstride.envs.puzzles.rules import Moderation
from longstride.envs.puzzles.sudoku import Sudoku
from longstride.envs.puzzles.twenty_questions import TwentyQuestions
from longstride.envs.puzzles.vaults import Vaults
from longstride.envs.puzzles.wordle import Wordle

__all__ = [
    "Corrected",
    "Countdown",
    "Facts",
    "Game",
    "Iterated",
    "LayeredPath",
    "Mastermind",
    "TextMaze",
    "Moderation",
    "ModularChain",
    "Puzzle",
    "PuzzleEnv",
    "PuzzleSource",
    "Puzzles",
    "ReasoningGym",
    "Sudoku",
    "TwentyQuestions",
    "Vaults",
    "Wordle",
]
