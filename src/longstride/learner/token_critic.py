"""The critic of tokens at work: it estimates what is still to be earned before each token, and learns from answers that
have ended.

What always holds: as for the critic of turns. An answer that goes on in a later iteration, or that its budget cut, is
estimated and not learnt from; one that was sampled in pieces is learnt from as a whole, with its last piece.
"""

from collections.abc import Sequence

import torch

from longstride.core.implementation import implements
from longstride.core.trajectory import PIECE, Trajectory, Turn
from longstride.learner.critics import CriticBatch, TokenValue
from longstride.learner.turn_critic import TurnCritic
from longstride.methods.base import Sample, demonstration


@implements(TokenValue)
class TokenCritic(TurnCritic):
    """Network and optimiser of a `TokenValue`; see `TurnCritic`."""

    @torch.no_grad()
    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        """A value before each sampled token, and as that of the turn the one before its first."""
        turns = [turn for t in trajectories for turn in t.turns]
        for turn in turns:
            turn.estimates["value"] = 0.0  # of a turn in which nothing was sampled
        sampled = [turn for turn in turns if turn.sampled_ids]
        if not sampled:
            return
        samples = [demonstration(turn.prompt_ids, turn.sampled_ids, media=turn.media) for turn in sampled]
        value_P = self._head.value(self._raw(self._policy.features(samples)))
        for turn, value_T in zip(sampled, value_P.split([len(turn.sampled_ids) for turn in sampled]), strict=True):
            turn.token_values = value_T.tolist()
            turn.estimates["value"] = turn.token_values[0]

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns from whole answers what each of them earned."""
        ended = [
            (turn, t.reward)
            for t in batch.trajectories
            if t.role != PIECE and t.stop.terminated
            for turn in t.turns
            if turn.ids
        ]
        if not ended:
            return {"value_loss": 0.0, "value_explained": 0.0}
        feature_PD = self._policy.features([_whole(turn) for turn, _ in ended])
        target_P = torch.tensor([reward for turn, reward in ended for _ in turn.ids])
        with torch.no_grad():
            before_P = self._head.value(self._raw(feature_PD))
        return self._learn(feature_PD, target_P, before_P, batch.rng)


def _whole(turn: Turn) -> Sample:
    """A turn with all of its tokens, also those that it began with."""
    return demonstration(turn.prompt_ids[: len(turn.prompt_ids) - turn.given], turn.ids, media=turn.media)
