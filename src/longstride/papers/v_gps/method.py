"""A policy that draws among proposals by their values (`ReRanked`)."""

from torch import Tensor

from longstride.control import BestOfN, CriticNets
from longstride.control.extraction import Actor, chosen
from longstride.control.noise import RunNoise
from longstride.core.numbers import Count, Positive


class ReRanked(BestOfN):
    """One of K proposals of a cloned policy, drawn by the softmax of their scores."""

    side_by_side = True

    samples: Count = 10
    """K."""
    beta: Positive = 0.1
    """Temperature, in units of the critic's score: the value, or with a `BCE` head its logit; towards 0 the best is taken."""

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert critic is not None
        action_BKA = actor.policy.sample(state_BS, noise, self.samples)
        weight_BK = (critic.score(state_BS, action_BKA) / self.beta).softmax(-1)
        return chosen(action_BKA, noise.choice(weight_BK, 1).squeeze(-1))
