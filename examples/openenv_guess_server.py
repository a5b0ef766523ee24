"""A guessing game as an OpenEnv server: `pip install openenv`, then `python examples/openenv_guess_server.py`."""

import random
from typing import Any

import uvicorn
from openenv.core.env_server import (  # pyright: ignore[reportMissingImports]
    Action,
    Environment,
    Observation,
    State,
    create_app,
)


class Guess(Action):
    guess: int


class Clue(Observation):
    clue: str


class Guessing(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, **rest: Any) -> Clue:
        self._wanted, self._state = random.Random(seed).randrange(10), State(episode_id=episode_id)
        return Clue(clue="I think of a number from 0 to 9.")

    def step(self, action: Guess, timeout_s: float | None = None, **rest: Any) -> Clue:
        self._state.step_count += 1
        right = action.guess == self._wanted
        clue = "right" if right else "higher" if action.guess < self._wanted else "lower"
        return Clue(clue=clue, reward=float(right), done=right)

    @property
    def state(self) -> State:
        return self._state


app = create_app(Guessing, Guess, Clue, max_concurrent_envs=8)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8000)
