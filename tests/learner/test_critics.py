"""Critics: what the critic of turns learns on a chain whose values are known, its state, and a critic of another kind
in a run."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from estimators import episode_of, weighted_scores
from helpers import Collected, content, make_trajectory, make_turn, rows_of, tiny_model, trajectories_of, weights_hash
from one_page import Watcher, make_recipe, save_model
from torch import Tensor

from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, RunError
from longstride.core.trajectory import Trajectory
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import Critic, CriticBatch, CriticConfig, HiddenStates, TurnValue
from longstride.learner.learner import Learner
from longstride.learner.turn_critic import TurnCritic
from longstride.methods import Advantage, Credit, OnPolicy
from longstride.methods.advantages import GAE
from longstride.models.tiny import TinyConfig
from longstride.run.loop import train

STATES = 4


def policy() -> Learner:
    shape = TinyConfig(width=16, layers=2, heads=2, kv_heads=1, ffn=32)
    return Learner(tiny_model(10, shape=shape), LearnerConfig(dtype="float32"))


def small(**numbers: Any) -> TurnValue:
    return TurnValue.model_validate({"width": 32, "batch_turns": 64, "epochs": 10, "lr": 3e-3, **numbers})


def critic_of(config: CriticConfig, seed: int = 0, learner: Learner | None = None) -> TurnCritic:
    critic = config.make(learner or policy(), seed)
    assert isinstance(critic, TurnCritic)
    return critic


def batch(trajectories: Sequence[Trajectory], credit: Credit | None = None, seed: int = 0) -> CriticBatch:
    return CriticBatch(trajectories, credit or GAE(values="critic"), Collected(), random.Random(seed))


def estimated(critic: Critic, trajectories: Sequence[Trajectory]) -> list[list[float]]:
    """The value of each turn."""
    critic.estimate(trajectories)
    return [[turn.estimates["value"] for turn in t.turns] for t in trajectories]


def chain(discount: float = 0.9) -> tuple[EnumerableMDP, np.ndarray]:
    """One action goes on to the next state, the other gives up for 0.3; going on from the last state earns 1."""
    moves, rewards = np.zeros((STATES + 1, 2, STATES + 1)), np.zeros((STATES + 1, 2))
    for s in range(STATES):
        moves[s, 0, s + 1] = moves[s, 1, STATES] = 1
    moves[STATES, :, STATES], rewards[STATES - 1, 0], rewards[:STATES, 1] = 1, 1.0, 0.3
    problem = EnumerableMDP(moves, rewards, np.eye(STATES + 1)[0], np.arange(STATES + 1) == STATES, STATES, discount)
    return problem, np.array([[1.0, 0.0]] * STATES + [[0.0, 0.0]])


def exact_values(discount: float) -> np.ndarray:
    problem, logits = chain(discount)
    values_H_S = (problem.policy(logits) * problem.action_values(logits)).sum(2)
    return values_H_S.diagonal()[:STATES]  # state s is only ever come to at step s


def taught(config: TurnValue, credit: GAE, rounds: int) -> TurnCritic:
    """A critic that sees some 60 episodes a round, each path as often as is probable."""
    problem, logits = chain()
    episodes = [episode_of(p) for p in problem.trajectories(logits) for _ in range(round(60 * p.probability))]
    critic = critic_of(config, seed=1)
    for k in range(rounds):
        critic.before_update(batch(episodes, credit))
        critic.after_update(batch(episodes, credit, seed=k))
    return critic


def values_of(critic: TurnCritic) -> list[float]:
    """The value of each state of the chain."""
    return estimated(critic, [make_trajectory([make_turn([0], [s]) for s in range(STATES)])])[0]


@pytest.mark.parametrize(("head", "lam"), [("scalar", 1.0), ("scalar", 0.5), ("bce", 1.0), ("hl_gauss", 1.0)])
def test_the_critic_of_turns_learns_the_values_of_a_chain(head, lam):
    found = values_of(taught(small(head=head), GAE(values="critic", discount=0.9, lam=lam), rounds=10))
    np.testing.assert_allclose(found, exact_values(0.9), atol=0.03)
    assert max(found) - min(found) > 0.35


def test_learned_values_leave_the_gradient_exact_and_reduce_its_variance():
    """All episodes of the chain, undiscounted so that the estimate is that of the return; lam = 1."""
    problem, logits = chain(1.0)
    critic = taught(small(), GAE(values="critic"), rounds=8)
    paths = list(problem.trajectories(logits))
    episodes, p = [episode_of(path) for path in paths], np.array([path.probability for path in paths])
    critic.before_update(batch(episodes))
    variance = {}
    for values in ("none", "critic"):
        credit = GAE.model_validate({"values": values})
        estimates = np.array([weighted_scores(problem.policy(logits), credit([t])) for t in episodes])
        mean = np.einsum("n,nsa->sa", p, estimates)
        np.testing.assert_allclose(mean, problem.gradient(logits), atol=1e-6)  # values are float32
        variance[values] = float(p @ ((estimates - mean) ** 2).sum((1, 2)))
    assert variance["critic"] < 0.5 * variance["none"]


def test_a_truncated_state_is_worth_what_would_have_come_and_a_terminated_one_is_not():
    """0.1 a turn at discount 0.5: 0.1 + 0.5 V = V where nobody saw the end."""
    credit, found = GAE(values="critic", discount=0.5, lam=0.0), []
    for stop in (StopReason.TURNS, StopReason.ENV_ENDED):
        critic = critic_of(small())
        played = [make_trajectory([make_turn([1], [3], reward=0.1)], 0.1, stop=stop)] * 8
        for k in range(30):
            critic.before_update(batch(played))
            critic.after_update(batch(played, credit, seed=k))
        found.append(estimated(critic, played)[0][0])
    assert found == pytest.approx([0.2, 0.1], abs=0.01)


def test_the_critic_reads_the_policy_at_the_end_of_each_prompt_and_never_moves_it():
    learner = policy()
    before = [p.clone() for p in learner.model.parameters()]
    critic = critic_of(small(), learner=learner)
    turns = [make_turn([3, 4], [1, 2]), make_turn([], [1, 2, 3, 4, 5]), make_turn([7], [1, 2, 3, 4, 5, 6])]
    growing = make_trajectory(turns, 1.0)
    alone = [make_trajectory([make_turn([9], turn.prompt_ids)], 1.0) for turn in growing.turns]
    estimated(critic, [growing])
    critic.fit([growing], [[0.2, 0.5, 0.9]], random.Random(0))
    values, *each = estimated(critic, [growing, *alone])
    assert values == pytest.approx([v for (v,) in each], abs=1e-5) and len(set(values)) == 3
    assert all(torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True))
    assert all(p.grad is None for p in learner.model.parameters())


def test_the_metrics_of_a_fit_and_targets_out_of_range():
    critic = critic_of(small(low=-1.0, epochs=300, lr=1e-2))
    episode = make_trajectory([make_turn([1], [1]), make_turn([1], [2])])
    estimated(critic, [episode])
    for turn in episode.turns:
        turn.estimates["value"] = 0.0
    first = critic.fit([episode], [[5.0, 0.0]], random.Random(0))
    assert estimated(critic, [episode])[0] == pytest.approx([1, 0], abs=0.02)
    second = critic.fit([episode], [[5.0, 0.0]], random.Random(0))
    assert first["value_explained"] == pytest.approx(0, abs=1e-6) and second["value_explained"] > 0.99
    assert second["value_loss"] < 0.01
    failed = make_trajectory(stop=StopReason.INFRA_FAILURE)
    assert critic.fit([failed], [[]], random.Random(0)) == {"value_loss": 0.0, "value_explained": 0.0}
    assert critic.before_update(batch([])) == {}


def test_a_critic_restored_from_its_state_goes_on_as_it_would_have():
    learner, (problem, logits) = policy(), chain()
    episodes = [episode_of(p) for p in problem.sample(logits, np.random.default_rng(0), 40)]
    one, other = critic_of(small(), 0, learner), critic_of(small(), 5, learner)
    assert values_of(one) != values_of(other)
    one.before_update(batch(episodes))
    one.after_update(batch(episodes))
    kept = {name: value.clone() for name, value in one.state().items()}
    other.load_state(kept)
    for critic in (one, other):
        critic.after_update(batch(episodes, seed=1))
    assert values_of(one) == values_of(other)
    for config, tensors in ((small(width=16), kept), (small(), {})):
        with pytest.raises(RunError, match="another critic"):
            critic_of(config, learner=learner).load_state(tensors)


def test_ranges_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="high must be above low"):
        build(TurnValue, {"low": 1.0})
    with pytest.raises(ConfigError, match=r"bce knows returns in \[0, 1\], not in \[-1"):
        build(TurnValue, {"head": "bce", "low": -1.0})
    critic = TurnValue(head="hl_gauss", low=-1.0)
    assert build(CriticConfig, critic.as_data()) == critic


# A critic of another kind, with a credit of its own


class Novelty(CriticConfig):
    """How rarely turns of a length were seen: 1 / (1 + times before)."""

    estimates: ClassVar[frozenset[str]] = frozenset({"novelty"})

    def make(self, policy: HiddenStates, seed: int) -> Critic:
        return Counts()


class Counts:
    """Counts turns by their length."""

    def __init__(self) -> None:
        self.seen = torch.zeros(16)

    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        for t in trajectories:
            for turn in t.turns:
                turn.estimates["novelty"] = 1 / (1 + float(self.seen[len(turn.sampled_ids)]))

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        assert len(batch.experience.records) >= len(batch.trajectories) and isinstance(batch.credit, NoveltyCredit)
        self.estimate(batch.trajectories)
        return {"novelty_before": sum(u.estimates["novelty"] for t in batch.trajectories for u in t.turns)}

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        for t in batch.trajectories:
            for turn in t.turns:
                self.seen[len(turn.sampled_ids)] += 1
        return {"seen": float(self.seen.sum())}

    def state(self) -> dict[str, Tensor]:
        return {"seen": self.seen.clone()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        self.seen = tensors["seen"].clone()


class NoveltyCredit(Credit):
    """What a turn's novelty says, on each of its tokens."""

    @property
    def estimates(self) -> frozenset[str]:
        return frozenset({"novelty"})

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[turn.estimates["novelty"] for turn in t.turns] for t in played]


def test_any_credit_may_read_any_critic_and_a_run_resumes_with_it(tmp_path):
    changes: dict[str, Any] = {"credit": NoveltyCredit(), "critic": Novelty(warmup=1), "replay": OnPolicy()}
    recipe = make_recipe(save_model(tmp_path / "model"), iterations=3, **changes)
    train(recipe, tmp_path / "uninterrupted")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "resumed", Watcher(stop_after=2))
    train(recipe, tmp_path / "resumed", resume=True)
    rows = rows_of(tmp_path / "uninterrupted", "train")
    assert rows == rows_of(tmp_path / "resumed", "train")
    assert weights_hash(tmp_path / "uninterrupted") == weights_hash(tmp_path / "resumed")
    turns = [row["summary"]["env_steps"] for row in rows]
    assert [row["seen"] for row in rows] == np.cumsum(turns).tolist()
    assert rows[0]["novelty_before"] == turns[0] and rows[1]["novelty_before"] < turns[1]
    assert rows[0]["steps"] == 0 and all(row["steps"] for row in rows[1:])  # the critic alone learns at first
    one, other = (map(content, trajectories_of(tmp_path / run)) for run in ("uninterrupted", "resumed"))
    assert list(one) == list(other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"credit": NoveltyCredit()}, "the credit reads novelty, the critic gives none"),
        ({"credit": NoveltyCredit(), "critic": TurnValue()}, "the credit reads novelty, the critic gives value"),
        ({"critic": TurnValue()}, "the credit reads none, the critic gives value"),
    ],
)
def test_a_critic_and_a_credit_that_reads_it_belong_together(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        make_recipe(tmp_path).replace(**changes)
