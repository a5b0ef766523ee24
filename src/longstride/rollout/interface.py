"""What a reward returns, checked where it enters an episode; `envs.interface` does the same for environments."""

from collections.abc import Awaitable, Callable
from typing import Any

from longstride.core.foreign import staying
from longstride.envs.interface import check_flag, check_number, checked
from longstride.rewards import Verdict


async def ask_reward(reward: Callable[..., Any], *args: Any) -> Verdict:
    """What a reward says, at once or after waiting.

    Raises:
        OwnCodeError: it is no verdict, or a number of it is no finite one.
        EnvFailure: it asks for the end of the program (`sys.exit`).
    """
    with staying(lambda: type(reward).__name__):
        answer = reward(*args)
        return checked_verdict(await answer if isinstance(answer, Awaitable) else answer, reward)


def checked_verdict(answer: Any, reward: object) -> Verdict:
    """A verdict as it came from a reward.

    Raises:
        OwnCodeError: as `ask_reward`.
    """
    place = lambda: type(reward).__name__  # noqa: E731
    verdict = checked(Verdict, answer, place)
    check_number(verdict.reward, "the reward", place)
    check_flag(verdict.success, "success", place)
    for name, value in verdict.terms.items():
        check_number(value, f"the term {name!r}", place)
    return verdict
