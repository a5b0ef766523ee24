"""What a reward returns, checked where it enters an episode; `envs.interface` does the same for environments."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from longstride.core.errors import OwnCodeError, short
from longstride.core.foreign import staying
from longstride.core.trajectory import Trajectory
from longstride.envs.interface import checked, flag, number
from longstride.rewards import Verdict


async def ask_reward(reward: Callable[..., Any], trajectory: Trajectory, *args: Any) -> Verdict:
    """What a reward says of an episode, at once or after waiting. Whatever it raises has a note of the episode.

    Raises:
        OwnCodeError: it is no verdict, or a number of it is no finite one.
        EnvFailure: it asks for the end of the program (`sys.exit`).
    """
    try:
        with staying(lambda: type(reward).__name__):
            answer = reward(trajectory, *args)
            return checked_verdict(await answer if isinstance(answer, Awaitable) else answer, reward)
    except Exception as e:
        e.add_note(
            f"the reward was asked about task {trajectory.task.id!r}, with the answer {short(trajectory.answer)}"
        )
        raise


def checked_verdict(answer: Any, reward: object) -> Verdict:
    """A verdict as it came from a reward, its numbers and flags of Python's own types.

    Raises:
        OwnCodeError: as `ask_reward`, or its evidence is no data that can be written as JSON.
    """
    place = lambda: type(reward).__name__  # noqa: E731
    verdict = checked(Verdict, answer, place)
    if not isinstance(verdict.terms, Mapping):
        raise OwnCodeError(f"{place()}: terms are {short(verdict.terms)}; expected numbers by name")
    terms = {str(name): number(value, f"the term {name!r}", place) for name, value in verdict.terms.items()}
    try:
        json.dumps(verdict.evidence)
    except (TypeError, ValueError) as e:
        raise OwnCodeError(f"{place()}: the evidence is {short(verdict.evidence)}; expected data of JSON ({e})") from e
    return replace(
        verdict,
        reward=number(verdict.reward, "the reward", place),
        success=flag(verdict.success, "success", place),
        terms=terms,
    )
