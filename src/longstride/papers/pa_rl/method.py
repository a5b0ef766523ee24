"""Actions that a critic has improved (`ActionSearch`), what imitates them (`Optimised`), and what values them
(`SearchedTD`)."""

from typing import Self

import torch
from pydantic import model_validator
from torch import Tensor

from longstride.control import Batch, CriticNets, Extraction, PolicyNets, QNets, TDCritic
from longstride.control.extraction import Actor, chosen
from longstride.control.noise import RunNoise
from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero, Positive, Weight


class ActionSearch(Component):
    """Several actions of a policy are drawn, the best ones are kept (global optimisation), and each of these climbs the
    critic's slope for some steps (local optimisation)."""

    samples: Count = 32
    """Actions drawn in a state."""
    kept: Count = 10
    """How many of them are kept, the best by the critic."""
    steps: CountOrZero = 10
    """Steps along the slope; 0: none, so drawn actions are only ranked."""
    rate: Positive = 3e-4
    """Length of a step, in actions per unit of the slope. The paper's is for values from -100 to 0."""

    def __call__(
        self,
        critic: CriticNets,
        policy: PolicyNets,
        state_BS: Tensor,
        noise: RunNoise,
        data_BA: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """[B, K, A] actions within the box and their [B, K] scores, without gradient. Of the way that an action has
        climbed, the place with the best score counts.

        Args:
            critic: what scores.
            policy: what proposes.
            state_BS: states.
            noise: draws the proposals.
            data_BA: actions of the data, each of which takes the place of the worst one kept; None: there are none.
        """
        with torch.inference_mode(False), torch.enable_grad():  # agents act in inference mode, which knows no slope
            state_BS = state_BS.clone()
            with torch.no_grad():
                action_BKA = policy.sample(state_BS, noise, self.samples).clamp(-1, 1)
                kept_BK = critic.score(state_BS, action_BKA).topk(min(self.kept, self.samples), -1).indices
                action_BKA = action_BKA.take_along_dim(kept_BK[..., None], -2)
                if data_BA is not None:
                    action_BKA = torch.cat((action_BKA[..., :-1, :], data_BA.unsqueeze(-2)), -2)
            best_BKA, best_BK = action_BKA, torch.full(action_BKA.shape[:-1], -torch.inf)
            for step in range(self.steps + 1):
                action_BKA = action_BKA.detach().requires_grad_()
                score_BK = critic.score(state_BS, action_BKA)
                better_BK = score_BK.detach() > best_BK
                best_BKA = torch.where(better_BK[..., None], action_BKA.detach(), best_BKA)
                best_BK = torch.where(better_BK, score_BK.detach(), best_BK)
                if step < self.steps:
                    (slope_BKA,) = torch.autograd.grad(score_BK.sum(), action_BKA)
                    action_BKA = (action_BKA + self.rate * slope_BKA).clamp(-1, 1)
        return best_BKA, best_BK

    def best(self, critic: CriticNets, policy: PolicyNets, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """[B, A] the best action found."""
        action_BKA, score_BK = self(critic, policy, state_BS, noise)
        return chosen(action_BKA, score_BK.argmax(-1))


class Optimised(Extraction):
    """Policy-agnostic RL: the policy imitates actions that the critic has improved, by its own loss for imitation, and
    an improved one is what is done."""

    needs_real = True
    needs_slopes = True
    boxes = True
    side_by_side = True

    search: ActionSearch = ActionSearch()
    """How they are improved."""
    temperature: Weight = 1.0
    """One of the improved actions is imitated, drawn by the softmax of their scores over this; 0: the best."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None
        action_BKA, score_BK = self.search(critic, actor.policy, batch.state_BS, noise, batch.action_BA)
        if self.temperature:
            number_B = noise.choice((score_BK / self.temperature).softmax(-1), 1).squeeze(-1)
        else:
            number_B = score_BK.argmax(-1)
        loss = actor.policy.imitation_loss(batch.state_BS, chosen(action_BKA, number_B), noise).mean(-1)
        score_B = score_BK.take_along_dim(number_B[..., None], -1)
        return loss, {"imitation": loss, "score": score_B.mean((-2, -1))}

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert critic is not None
        return self.search.best(critic, actor.policy, state_BS, noise)


class SearchedTD(TDCritic):
    """The value of what `Optimised` does: in targets, and where a conservative term asks for the policy's actions, the
    best action found takes the place of one drawn."""

    side_by_side = True

    search: ActionSearch = ActionSearch()
    """As in the extraction."""

    @model_validator(mode="after")
    def _knows_no_density(self) -> Self:
        if self.conservative is not None and self.conservative.importance:
            raise ValueError("actions that were searched for have no density: set conservative.importance=false")
        return self

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return super().loss(nets, batch, SearchedActions(self.search, nets, policy), noise, conservative)


class SearchedActions(PolicyNets):
    """What a policy does once a critic has improved its actions; a batch of states is searched once."""

    def __init__(self, search: ActionSearch, critic: CriticNets, policy: PolicyNets) -> None:
        super().__init__()
        self.search, self.critic, self.policy = search, critic, policy
        self._found: dict[Tensor, Tensor] = {}

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        """[B, K, A] the best action found, K times."""
        return self.greedy(state_BS, noise).unsqueeze(-2).expand(*state_BS.shape[:-1], count, -1)

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        if state_BS not in self._found:
            self._found[state_BS] = self.search.best(self.critic, self.policy, state_BS, noise)
        return self._found[state_BS]

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        return self.policy.imitation_loss(state_BS, action_BA, noise)
