"""Generalised advantage estimation of answers that may go on (`ExtendedGAE`)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from longstride.core.budget import StopReason
from longstride.core.trajectory import PIECE, Trajectory
from longstride.methods.advantages import GAE


class ExtendedGAE(GAE):
    """`GAE` over tokens that also weighs answers which go on in a later iteration (EGAE, equation 8): what comes after
    the last token of a piece is worth what the critic says before it, and the piece has earned nothing yet. So the last
    term is 0 where nothing is discounted, and earlier tokens have the sum of `GAE`."""

    over: Literal["turns", "tokens"] = "tokens"
    """What a step is; for answers of one turn, a token."""
    values: Literal["none", "group", "critic"] = "critic"
    """Value of a state; the paper has a critic of tokens (`learner.critics.TokenValue`)."""

    def _estimates(self, played: Sequence[Trajectory]) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        return super()._estimates([_going_on(t) if t.role == PIECE else t for t in played])


def _going_on(piece: Trajectory) -> Trajectory:
    """A piece as it counts here. What was cut may read like an answer, and was judged as if it were one."""
    return replace(piece, reward=0.0, stop=StopReason.TOKENS)
