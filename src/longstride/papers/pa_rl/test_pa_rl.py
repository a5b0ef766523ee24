"""PA-RL: what the search finds, by hand, and that it serves every class of policy."""

import pytest
import torch
from torch import Tensor

from longstride.control import (
    Batch,
    BinsPolicy,
    CategoricalPolicy,
    Conservative,
    ControlPolicy,
    CriticNets,
    FlowPolicy,
    GaussianPolicy,
    Level,
    PolicyNets,
    TDCritic,
)
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.models.mlp import Trunk
from longstride.papers.pa_rl.method import ActionSearch, Optimised, SearchedActions, SearchedTD

SMALL = Trunk(width=8, depth=1)


class Proposes(PolicyNets):
    """The actions 0, 0.2, 0.4 and so on, in every state; it remembers what it was to imitate."""

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        return (0.2 * torch.arange(count)).view(1, count, 1).expand(len(state_BS), count, 1)

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        return self.sample(state_BS, noise)[:, 0]

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        self.imitated = action_BA
        return action_BA[:, 0]


class Wants(CriticNets):
    """-(a - best)^2: the slope is 2 (best - a)."""

    def __init__(self, best: float) -> None:
        super().__init__()
        self.best = best

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        return -(action[..., 0] - self.best).square()


def rows(state_BS: Tensor, action_BA: Tensor) -> Batch:
    nothing_B = torch.zeros(len(state_BS))
    return Batch(state_BS, action_BA, nothing_B, nothing_B, state_BS, nothing_B)


STATE, NOISE = torch.zeros(2, 1), RunNoise.seeded(0)


def searched(best: float, **settings: float) -> list[float]:
    """The actions that are found, sorted."""
    search = ActionSearch(**{"samples": 4, "kept": 2, "steps": 0} | settings)  # pyright: ignore[reportArgumentType]
    return sorted(search(Wants(best), Proposes(), STATE, NOISE)[0][0, :, 0].tolist())


def test_the_best_of_those_drawn_are_kept_and_climb_the_slope_within_the_box() -> None:
    assert searched(1.0) == pytest.approx([0.4, 0.6])
    # a step of 0.25 goes half of the way that is left
    assert searched(1.0, steps=1, rate=0.25) == pytest.approx([0.7, 0.8])
    assert searched(1.0, steps=2, rate=0.25) == pytest.approx([0.85, 0.9])
    assert searched(3.0, steps=1, rate=0.25) == pytest.approx([1.0, 1.0])


def test_a_step_that_goes_too_far_is_not_taken() -> None:
    # from 0.4 and 0.2 to 0.3 - 2 (a - 0.3), which is 0.1 and 0.5: farther off
    assert searched(0.3, steps=1, rate=1.5) == pytest.approx([0.2, 0.4])


def test_the_action_of_the_data_takes_the_place_of_the_worst_and_may_be_the_one_imitated() -> None:
    data = torch.tensor([[0.9], [-0.5]])
    found, score = ActionSearch(samples=4, kept=2, steps=0)(Wants(1.0), Proposes(), STATE, NOISE, data)
    torch.testing.assert_close(found[..., 0], torch.tensor([[0.6, 0.9], [0.6, -0.5]]))
    torch.testing.assert_close(score, -(found[..., 0] - 1).square())
    policy = Proposes()
    batch = rows(STATE, data)
    extraction = Optimised(search=ActionSearch(samples=4, kept=2, steps=0), temperature=0.0)
    loss, metrics = extraction.loss(Actor(policy), Wants(1.0), batch, NOISE)
    torch.testing.assert_close(policy.imitated, torch.tensor([[0.9], [0.6]]))
    assert loss.item() == pytest.approx(0.75) and metrics["score"].item() == pytest.approx(-(0.01 + 0.16) / 2)
    torch.testing.assert_close(
        extraction.act(Actor(policy), Wants(1.0), STATE, NOISE, explore=True), torch.full((2, 1), 0.6)
    )


def test_what_is_imitated_is_drawn_by_the_softmax_of_the_scores() -> None:
    policy, state, data = Proposes(), torch.zeros(20_000, 1), torch.full((20_000, 1), 0.5)
    batch = rows(state, data)
    Optimised(search=ActionSearch(samples=2, kept=2, steps=0), temperature=0.5).loss(
        Actor(policy), Wants(1.0), batch, RunNoise.seeded(1)
    )  # 0.2 and the data's 0.5 are kept, with the scores -0.64 and -0.25
    share = (policy.imitated > 0.4).float().mean().item()
    assert share == pytest.approx(torch.tensor(0.39 / 0.5).sigmoid().item(), abs=0.01)


def test_targets_take_the_best_action_and_a_state_is_searched_once() -> None:
    critic = TDCritic(trunk=SMALL)
    nets = critic.make(1, 1, torch.Generator().manual_seed(0))
    found = SearchedActions(ActionSearch(samples=3, kept=3, steps=2), nets, Proposes())
    first = found.sample(STATE, NOISE, 2)
    assert first.shape == (2, 2, 1) and torch.equal(first[:, 0], first[:, 1])
    assert torch.equal(found.sample(STATE, NOISE)[:, 0], first[:, 0])
    with torch.inference_mode():  # as agents act
        assert torch.equal(found.search.best(nets, Proposes(), torch.zeros(2, 1), NOISE), first[:, 0])


@pytest.mark.parametrize(
    "policy", [FlowPolicy(trunk=SMALL, steps=2), GaussianPolicy(trunk=SMALL), BinsPolicy(trunk=SMALL, bins=5)]
)
def test_any_policy_of_real_valued_actions_is_drawn_to_the_best_one(policy: ControlPolicy) -> None:
    """Two thirds of the data are at -0.5, a third at 0.5, and the critic wants the latter."""
    generator, noise = torch.Generator().manual_seed(0), RunNoise.seeded(0)
    actor, state = Actor(policy.make(1, 1, generator)), torch.zeros(24, 1)
    action = torch.tensor([-0.5, -0.5, 0.5]).repeat(8)[:, None]
    batch = rows(state, action)
    extraction = Optimised(search=ActionSearch(samples=4, kept=2, steps=1, rate=0.05), temperature=0.02)
    adam = torch.optim.Adam(actor.parameters(), lr=0.03)
    drawn = []
    for loss in (
        lambda: extraction.cloning(actor, batch, noise),
        lambda: extraction.loss(actor, Wants(0.5), batch, noise),
    ):
        for _ in range(40):
            adam.zero_grad()
            loss()[0].backward()
            adam.step()
        with torch.no_grad():
            drawn.append(actor.policy.sample(torch.zeros(1, 1), noise, 200).mean().item())
    assert drawn[0] < 0.1 and drawn[1] > 0.3


def test_discrete_actions_are_refused_and_the_conservative_term_needs_no_density() -> None:
    critic = SearchedTD(trunk=SMALL, conservative=Conservative(importance=False))
    with pytest.raises(ValueError, match="optimised needs real-valued actions, and those of categorical_policy are"):
        Level(critic=critic, policy=CategoricalPolicy(), extraction=Optimised())
    assert Level(critic=critic, policy=FlowPolicy(), extraction=Optimised()).critic == critic
    with pytest.raises(ValueError, match="have no density: set conservative.importance=false"):
        SearchedTD(conservative=Conservative())
