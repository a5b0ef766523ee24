"""Samples and credit: what is trained, with which weight.

What always holds: a sample has one number a sampled token in each of its streams and none for any other token, so a
token that the policy did not sample cannot be trained; nothing of a failed episode is in a sample.

A stream is a list of numbers, one a sampled token, under a name. Credit gives `ADVANTAGES`; `BEHAVIOUR` comes from
sampling; the learner adds `PROXIMAL` and `REFERENCE` where a loss needs them. A paper adds a stream by giving it a name
in its credit and reading that name in its loss: nothing between the two knows of it.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from longstride.core.component import Component
from longstride.core.content import Content, Media
from longstride.core.errors import OwnCodeError, short
from longstride.core.trajectory import Trajectory, without_error

ADVANTAGES = "advantages"
"""How much each token weighs in the loss."""
BEHAVIOUR = "behaviour_logprobs"
"""Log-probability under the policy that sampled the token."""
PROXIMAL = "proximal_logprobs"
"""Log-probability under the weights at the start of the update."""
REFERENCE = "reference_logprobs"
"""Log-probability under the policy that the loss holds on to."""

ANCHOR = "anchor_logprobs"
"""Log-probability under a second policy that a loss holds on to: the policy itself, some iterations ago."""


@dataclass(slots=True)
class Sample:
    """One prompt and what the policy sampled after it."""

    prompt_ids: list[int]
    """Exactly what the policy read."""
    sampled_ids: list[int]
    streams: dict[str, list[float]]
    """By name, one number a sampled token; `ADVANTAGES` always."""
    episode: int = 0
    """Ordinal of the trajectory."""
    group: int = 0
    """Group of the trajectory."""
    turn: int = 0
    """Number of the turn in its trajectory, from 0."""
    pair: int = -1
    """Samples with the same number are compared with one another, and stay in one optimiser step; -1 is none."""
    media: tuple[Media, ...] = ()
    """What the placeholders in `prompt_ids` stand for (`core.content`)."""
    targets: list[int] | None = None
    """What should have been said at the place of each of `sampled_ids`, where that is not what stands there and is
    read by what follows: labels of a demonstration that others took (DPT, arXiv 2306.14892)."""

    def __post_init__(self) -> None:
        if self.targets is not None and len(self.targets) != len(self.sampled_ids):
            raise ValueError(f"{len(self.targets)} targets for {len(self.sampled_ids)} tokens")
        for name in (ADVANTAGES, *self.streams):
            if len(self.streams.get(name, ())) != len(self.sampled_ids):
                raise ValueError(
                    f"a stream has one number a sampled token: {name} has {len(self.streams.get(name, ()))} for "
                    f"{len(self.sampled_ids)} tokens"
                )

    @property
    def advantages(self) -> list[float]:
        return self.streams[ADVANTAGES]

    @staticmethod
    def of(trajectory: Trajectory, number: int, advantages: list[float], **streams: list[float]) -> "Sample":
        """The turn of this number of a trajectory, with an advantage for each sampled token, and further streams."""
        turn = trajectory.turns[number]
        return Sample(
            turn.prompt_ids,
            turn.sampled_ids,
            {ADVANTAGES: advantages, BEHAVIOUR: turn.behaviour_logprobs, **streams},
            trajectory.ordinal,
            trajectory.group,
            number,
            media=turn.media,
        )


def demonstration(
    prompt_ids: list[int], ids: list[int], weight: float = 1.0, episode: int = 0, media: tuple[Media, ...] = ()
) -> Sample:
    """What is to be imitated: ids that need not have been sampled by the policy. Each of them weighs `weight`."""
    return Sample(prompt_ids, ids, {ADVANTAGES: [weight] * len(ids)}, episode, episode, media=media)


def turn_rewards(trajectory: Trajectory) -> list[float]:
    """What each turn earned; the last one also what the evaluator gave for the whole."""
    rewards = [turn.reward for turn in trajectory.turns]
    if rewards:
        rewards[-1] += trajectory.reward - sum(rewards)
    return rewards


def turn_states(trajectory: Trajectory) -> list[tuple[str, Content]]:
    """What each turn was taken in: address and content of what was seen, without the error line of the turn before,
    which would tell a state apart from itself."""
    errors = [None, *(turn.error for turn in trajectory.turns)]
    return [(t.url, without_error(t.observation, e)) for t, e in zip(trajectory.turns, errors, strict=False)]


Advantage = float | Sequence[float] | None
"""Of a turn: a number for all of its sampled tokens, or one for each of them; None where it is not trained."""


class Credit(Component):
    """Family: how much every turn of the episodes of an update weighs, or every token.

    A member gives numbers; samples are made of them here, in the order of trajectories and turns. A failed episode is
    taken out before any member sees it: it is in no group, no mean and no sample. A turn in which nothing was sampled
    makes no sample, whatever its number.

    Denominators. A number is used as it is: what a method divides an advantage by (a deviation, a number of turns), its
    credit divides by. What the sum over tokens is divided by is the loss's (`Loss.aggregation`), which counts tokens,
    turns or episodes among samples alone: a turn of advantage 0 is counted there, and one of None is not. A number that
    is not finite makes the step that it is in one that is skipped and counted (`Learner.step`).
    """

    @property
    def estimates(self) -> frozenset[str]:
        """Names of the estimates in `Turn.estimates` that a critic has to provide."""
        return frozenset()

    @abstractmethod
    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        """Of each trajectory the advantage of each of its turns.

        Args:
            played: the episodes of an update; none of them failed.
        """

    def streams(self, played: Sequence[Trajectory]) -> Mapping[str, Sequence[Sequence[Advantage]]]:
        """Further streams by name, in the form of advantages: what a loss reads besides. A turn that is trained has its
        number in each of them."""
        return {}

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        """The samples of one update.

        Raises:
            OwnCodeError: a member did not give a number for each turn, or for each sampled token of one.
        """
        played = [t for t in trajectories if not t.stop.failed]
        given = {ADVANTAGES: self.advantages(played), **self.streams(played)}
        for name, numbers in given.items():
            came, wanted = self._lengths(name, numbers), [t.length for t in played]
            if came != wanted:
                raise OwnCodeError(
                    f"{type(self).__name__} gives {name} for {short(came)} turns; the episodes have {short(wanted)}"
                )
        samples = []
        for n, t in enumerate(played):
            for k, turn in enumerate(t.turns):
                if turn.sampled_ids and given[ADVANTAGES][n][k] is not None:
                    tokens = len(turn.sampled_ids)
                    streams = {name: self._by_token(name, of[n][k], tokens) for name, of in given.items()}
                    samples.append(Sample.of(t, k, **streams))
        return samples

    def _lengths(self, name: str, numbers: Any) -> list[int]:
        """For how many turns of each trajectory there are numbers."""
        try:
            return [len(of) for of in numbers]
        except TypeError:
            raise OwnCodeError(
                f"{type(self).__name__} gives {short(numbers)} for {name}; expected of each episode a list of "
                "numbers, one a turn"
            ) from None

    def _by_token(self, name: str, number: Advantage, tokens: int) -> list[float]:
        """A number for each of the sampled tokens of a turn."""
        if isinstance(number, Sequence) and len(number) == tokens:
            return list(number)
        if number is None or isinstance(number, Sequence):
            got = "none" if number is None else len(number)
            raise OwnCodeError(f"{type(self).__name__} gives {got} {name} for a turn of {tokens} sampled tokens")
        return [float(number)] * tokens

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Of each trajectory, what a value before each of its turns should have been; `[]` for a failed one. Unless a
        credit says otherwise it is what was earned from that turn on."""
        return [[] if t.stop.failed else list(accumulate(reversed(turn_rewards(t))))[::-1] for t in trajectories]
