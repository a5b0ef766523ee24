"""SQIRL with networks: targets by hand, which steps are settled, and a tunnel that two steps of Q-iteration find and one
does not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import rows_of

from longstride.control import Batch, ControlTasks, NStep, TransitionStore, UniformPolicy
from longstride.control.envs import ControlEpisode, Spec, VectorEnv
from longstride.control.envs.base import VectorStep
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.papers.sqirl.method import FewStepQ, SettledSoFar
from longstride.papers.sqirl.recipe import RECIPE

SMALL = Trunk(width=8, depth=1)
NOISE = RunNoise.seeded(0)


class Tunnel(ControlTasks):
    """Two steps and three actions. The first action takes a bait of 0.5 and ends; any other enters a tunnel, whose end
    is worth 1 to one who takes the last action there. At random that is worth a third."""

    @property
    def spec(self) -> Spec:
        return Spec(observation=2, action=3, goal=(), discrete=True)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return []

    def training(self, count: int, horizon: int) -> VectorEnv:
        return TunnelEnv(count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return TunnelEnv(count, horizon), ["tunnel"] * count

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        return {"return": float(episode.reward.sum())}


class TunnelEnv(VectorEnv):
    def __init__(self, count: int, horizon: int) -> None:
        self.goal, self.horizon = np.zeros((count, 0)), horizon

    def reset(self, seed: int) -> np.ndarray:
        self.taken, self.ended = 0, np.zeros(len(self.goal), bool)
        return self.seen()

    def seen(self) -> np.ndarray:
        return np.stack([np.full(len(self.goal), float(self.taken > 0)), np.full(len(self.goal), float(self.taken))], 1)

    def step(self, action_BA: np.ndarray) -> VectorStep:
        number = action_BA.argmax(1)
        earned = np.where(self.ended, 0.0, (number == 2) * 1.0 if self.taken else (number == 0) * 0.5)
        self.ended = self.ended | ((number == 0) if not self.taken else False)
        self.taken += 1
        return VectorStep(self.seen(), earned, self.ended.copy(), ~self.ended & (self.taken >= self.horizon))


@pytest.mark.parametrize(("k", "found"), [(1, 0.5), (2, 1.0)])
def test_it_finds_the_tunnel_from_its_effective_horizon_on(k: int, found: float, tmp_path: Path) -> None:
    changes = {"k": k, "steps": 2, "trunk": SMALL.replace(width=16)}
    recipe = RECIPE.replace(
        tasks=Tunnel(),
        agent={"levels": (RECIPE.agent.levels[0].replace(critic=changes),), "batch": 64, "critic_lr": 0.02},
        phases=({"iterations": 2, "episodes": 60, "updates": 40},),
        horizon={"limit": 2},
        test_horizon={"limit": 2},
        evaluation={"episodes": 2, "every": 2},
    )
    recipe.train(tmp_path)
    rows = rows_of(tmp_path)
    assert rows[-1]["measures"]["return"] == [found] * 2
    assert [row["settled"] for row in rows if row["kind"] == "train"] == [1, 2]


def test_targets_are_the_return_then_backed_up_and_earlier_steps_do_not_count() -> None:
    critic = FewStepQ(k=3, steps=4, trunk=SMALL)
    nets = critic.make(2, 3, torch.Generator().manual_seed(0))
    for _ in range(2):  # step 1 is being settled
        critic.before_updates(nets)
    here, after = torch.tensor([[0.1, 0.0], [0.2, 1.0], [0.3, 2.0]]), torch.tensor([[0.2, 1.0], [0.3, 2.0], [0.4, 3.0]])
    action, returned = torch.eye(3), torch.tensor([5.0, 6.0, 7.0])
    batch = Batch(here, action, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.9, 0.9, 0.0]), after, returned)
    loss, metrics = critic.loss(nets, batch, UniformPolicy().make(2, 3, torch.Generator()), NOISE, True)
    by_hand = torch.zeros(())
    for b in (1, 2):
        q, then = nets.values(here, nets.q)[b, :, b], nets.values(after, nets.q)[b].amax(-1).detach()
        targets = [returned[b], *(batch.reward_B[b] + batch.discount_B[b] * then[j] for j in (0, 1))]
        by_hand = by_hand + sum((q[j] - targets[j]) ** 2 for j in range(3)) / 2
    torch.testing.assert_close(loss, by_hand)
    assert metrics["settled"] == 2


def test_settled_steps_keep_their_values_and_the_others_are_random_in_training() -> None:
    critic, extraction = FewStepQ(k=2, steps=3, trunk=SMALL), SettledSoFar()
    nets, actor = (
        critic.make(2, 3, torch.Generator().manual_seed(0)),
        Actor(UniformPolicy().make(2, 3, torch.Generator())),
    )
    kept = []
    for best in (0, 1, 2):
        critic.before_updates(nets)
        with torch.no_grad():
            nets.q.biases[-1][0, 0, 3:] = 50 * torch.eye(3)[best]  # Q^2 of all states
        kept.append(best)
        step = torch.arange(3.0).repeat(200)
        state = torch.stack([torch.zeros(600), step], 1)
        tested = extraction.act(actor, nets, state, NOISE, explore=False).argmax(1)
        assert tested.tolist() == [kept[int(t)] if t < len(kept) else best for t in step]
        explored = extraction.act(actor, nets, state, NOISE, explore=True).argmax(1)
        for t in range(3):
            assert explored[step == t].unique().tolist() == ([kept[t]] if t < len(kept) else [0, 1, 2])
    critic.before_updates(nets)
    assert nets.number == 3  # there are no more
    with pytest.raises(
        ConfigError, match="few_step_q reads the step of an episode .* which is 0.5 here: set tasks.wrap"
    ):
        extraction.act(actor, nets, torch.full((2, 2), 0.5), NOISE, explore=False)


def test_a_finite_horizon_has_no_value_after_its_last_step() -> None:
    episode = ControlEpisode(np.arange(4.0)[:, None], np.eye(2)[[0, 1, 1]], np.array([1.0, 2.0, 4.0]), False)
    store, rng = TransitionStore.of([episode]), np.random.default_rng(0)
    finite = NStep(finite=True, discount=0.5)
    assert finite.returns(store)[:3].tolist() == [1 + 1 + 1, 2 + 2, 4]
    spec = Spec(1, 2, (), discrete=True)
    assert finite(store, spec, np.arange(3), rng).discount_B.tolist() == [0.5, 0.5, 0]
    assert NStep(discount=0.5)(store, spec, np.arange(3), rng).discount_B.tolist() == [0.5] * 3
