"""DSRL: noise within its bound, values of noise by hand, and a rare kind of action that is found without leaving the data."""

import re

import pytest
import torch

from longstride.claims.tuning import axes
from longstride.control import SAC, Batch, ControlRecipe, FlowPolicy, GaussianPolicy, Level, TDCritic
from longstride.control.critics import QNets
from longstride.control.noise import RunNoise
from longstride.core.config import resolve
from longstride.models.mlp import Trunk
from longstride.papers.dsrl import recorded
from longstride.papers.dsrl.method import LatentSAC, NoiseAliased, SteeredFlow, SteeredNets
from longstride.papers.dsrl.recipe import CLAIM

SMALL = Trunk(width=8, depth=1)
STEERED = SteeredFlow(trunk=SMALL, steps=2, steering=GaussianPolicy(trunk=SMALL))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(n: int = 6) -> Batch:
    state, action, after = (torch.randn(n, size, generator=seeded(k)) for k, size in enumerate((3, 2, 3)))
    return Batch(state, action, torch.ones(n), torch.full((n,), 0.9), after, torch.zeros(n))


def test_what_is_done_is_what_the_flow_makes_of_noise_within_the_bound() -> None:
    policy = STEERED.make(3, 2, seeded())
    state, noise = torch.randn(5, 3, generator=seeded(1)), RunNoise.seeded(0)
    choice = policy.steering.sample(state, noise, 4)
    drawn = policy.sample(state, RunNoise.seeded(0), 4)
    for k in range(4):
        torch.testing.assert_close(drawn[:, k], policy.integrate(state, 1.5 * choice[:, k]))
    torch.testing.assert_close(
        policy.greedy(state, noise), policy.integrate(state, 1.5 * policy.steering.greedy(state, noise))
    )
    assert choice.abs().max() < 1


def test_values_of_noise_are_moved_to_those_of_the_actions_member_by_member_and_the_rest_is_td() -> None:
    critic, policy, data = NoiseAliased(trunk=SMALL), STEERED.make(3, 2, seeded()), batch()
    nets = critic.make(3, 2, seeded(2))
    loss, metrics = critic.loss(nets, data, policy, RunNoise.seeded(5), False)
    plain = TDCritic(trunk=SMALL)
    noise = RunNoise.seeded(5)
    td, _ = plain.loss(QNets(plain, nets.q, nets.target, None), data, policy, noise, False)
    w = noise.normal(6, 2)  # drawn after the actions of the target
    wanted = nets.q.value(data.state_BS, policy.integrate(data.state_BS, w))
    found = nets.of_noise.value(data.state_BS, w / 1.5)
    by_hand = ((found - wanted.detach()) ** 2).mean(1).sum()
    torch.testing.assert_close(loss, td + by_hand)
    torch.testing.assert_close(metrics["noise_loss"], by_hand)
    loss.backward()
    assert all(p.grad is None for p in policy.parameters())


def test_the_choice_follows_the_values_of_noise_and_nothing_else_moves() -> None:
    critic, policy, data = NoiseAliased(trunk=SMALL), STEERED.make(3, 2, seeded()), batch()
    nets, extraction = critic.make(3, 2, seeded(2)), LatentSAC(target_entropy=-1.0, temperature=0.5)
    actor = extraction.make(policy)
    loss, _ = extraction.loss(actor, nets, data, RunNoise.seeded(5))
    choice, log_density = policy.steering.sample_with_density(data.state_BS, RunNoise.seeded(5))
    score = nets.of_noise.value(data.state_BS, choice[:, 0]).amin(0)
    kept = -torch.tensor(0.5).log() * (log_density.mean().detach() - 2)
    torch.testing.assert_close(loss, 0.5 * log_density.mean() - score.mean() + kept)
    loss.backward()
    moved = {name for name, p in actor.named_parameters() if p.grad is not None}
    assert moved == {name for name, _ in actor.named_parameters() if "steering" in name or name == "log_temperature"}
    assert all(p.grad is None for p in nets.parameters())


def test_a_rare_kind_of_action_is_chosen_and_none_that_the_data_lack() -> None:
    """A tenth of the data are at 0.5, the rest at -0.5; more is better, up to 1, where the data have nothing."""
    trunk = Trunk(width=16, depth=1)
    policy = SteeredFlow(trunk=trunk, steps=3, steering=GaussianPolicy(trunk=trunk), bound=2.5).make(1, 1, seeded())
    critic, noise = NoiseAliased(trunk=trunk, ensemble=1), RunNoise.seeded(0)
    nets, extraction = critic.make(1, 1, seeded(1)), LatentSAC(temperature=0.02, target_entropy=-0.5)
    actor, state = extraction.make(policy), torch.zeros(40, 1)
    action = torch.tensor([[-0.5]] * 36 + [[0.5]] * 4) + 0.03 * torch.randn(40, 1, generator=seeded(2))
    data = Batch(state, action, action[:, 0], torch.zeros(40), state, torch.zeros(40))
    adam = torch.optim.Adam([*actor.parameters(), *nets.parameters()], lr=0.01)

    def trained(steps: int, cloning: bool) -> torch.Tensor:
        for _ in range(steps):
            adam.zero_grad()
            if cloning:
                extraction.cloning(actor, data, noise)[0].backward()
            else:
                (
                    critic.loss(nets, data, policy, noise, False)[0] + extraction.loss(actor, nets, data, noise)[0]
                ).backward()
            adam.step()
        with torch.no_grad():
            return policy.sample(torch.zeros(1, 1), noise, 200)[0, :, 0]

    cloned, steered = trained(200, True), trained(150, False)
    assert cloned.mean() < -0.1 and steered.mean() > 0.25
    assert (steered > 0.95).float().mean() < 0.02
    assert 0.3 < policy.greedy(torch.zeros(1, 1), noise).item() < 0.95


def test_it_takes_its_own_policy_and_its_own_critic() -> None:
    assert isinstance(STEERED.make(3, 2, seeded()), SteeredNets)
    Level(critic=NoiseAliased(), policy=STEERED, extraction=LatentSAC())
    for wrong, message in (
        ({"critic": TDCritic()}, "latent_sac reads one critic, which must be noise_aliased, not td_critic"),
        ({"policy": FlowPolicy()}, "latent_sac: policy must be steered_flow, not flow_policy"),
        ({"policy": GaussianPolicy(), "extraction": SAC()}, "critic noise_aliased: policy must be steered_flow"),
    ):
        parts = {"critic": NoiseAliased(), "policy": STEERED, "extraction": LatentSAC()}
        with pytest.raises(ValueError, match=message):
            Level(**parts | wrong)  # pyright: ignore[reportArgumentType]


def test_a_flow_that_is_only_cloned_is_tuned_over_the_rate_that_moves_it() -> None:
    assert {arm: list(axes(CLAIM, arm)) for arm in CLAIM.arms} == {
        arm: ["agent.policy_lr" if arm.endswith("cloned") else "agent.critic_lr"] for arm in CLAIM.arms
    }


def test_what_its_page_says_of_acting_is_taken() -> None:
    settings = re.findall(r"phases\.\d\.\w+=[\d.]*\d", recorded.__doc__ or "")
    phase = resolve(ControlRecipe, recorded.RECIPE, settings).phases[-1]
    assert len(settings) == 4 and (phase.updates, phase.episodes, phase.utd, phase.retained) == (0, 4, 0.5, 0.5)
