"""ArCHer: the game of questions, proposals of the policy, what the critic learns and from what, the actor's credit, and
exact resume."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File

import numpy as np
import pytest
import torch
from estimators import ascent_of, episode_of
from helpers import (
    Collected,
    make_task,
    make_trajectory,
    make_turn,
    rows_of,
    tiny_policy,
    trajectories_of,
    weights_hash,
)
from one_page import Watcher, make_recipe, save_model
from pydantic import ValidationError

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ModelError, RunError
from longstride.core.experience import Experience
from longstride.core.trajectory import Trajectory, Turn
from longstride.engines.base import Completion, Engine, Request
from longstride.envs.puzzles import Mastermind, TwentyQuestions
from longstride.envs.puzzles.twenty_questions import Hidden
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.learner.critics import CriticBatch, CriticConfig
from longstride.methods import Constant, Reinforce, Sample
from longstride.methods.base import ADVANTAGES
from longstride.models.load import load_policy, save_policy
from longstride.models.tiny import TinyConfig, words_of
from longstride.papers.archer.critic import DoubleCritic
from longstride.papers.archer.method import DoubleValue, StateReplay, TurnAdvantage
from longstride.papers.archer.recipe import RECIPE
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.run.loop import train

# The game


def play(puzzle: Hidden, *texts: str, turns: int = 0) -> Trajectory:
    evaluator = {"type": "state", "expected": {"verdict": "solved"}}
    task = make_task(goal=puzzle.goal, evaluator=evaluator, meta=puzzle.model_dump())
    plan = Plan(task, 0, 0, Budget(turns=turns or len(texts)))
    player = ScriptedPlayer(lambda e: texts[min(e.turns, len(texts) - 1)])
    return Pool(player, TwentyQuestions().env, TaskReward()).run([plan])[0]


NINE = Hidden(secret=9, low=1, high=12, questions=5)


def test_the_oracle_answers_each_kind_of_question():
    asked = ["from 9", "from 10", "mod 3", "mod 2", "9"]
    t = play(NINE, *(f"Action: check {question}" for question in asked))
    assert [turn.observation for turn in t.turns] == ["", "yes", "no", "yes", "no"]
    assert (t.stop, t.success, t.reward) == (StopReason.ENV_ENDED, True, 1.0)


def test_the_game_ends_with_its_last_question_and_only_questions_count():
    t = play(NINE, "Action: check 0", "hm", "Action: check from nine", "Action: check 3", turns=20)
    assert (t.length, t.stop, t.success) == (8, StopReason.ENV_ENDED, False)
    assert t.evidence["got"] == {"verdict": "the number was not found"}
    explained = "error: check takes a number from 1 to 99, after from or mod or alone"
    assert [turn.observation for turn in t.turns[1:5]] == [
        explained,
        "error: unknown action 'hm'; use one of check",
        explained,
        "no",
    ]
    assert play(NINE, "Action: check 3", turns=4).stop == StopReason.TURNS


def test_the_solver_finds_every_number_and_halves():
    lengths = [len(Hidden(secret=k, low=4, high=19, questions=5).steps()) for k in range(4, 20)]
    assert max(lengths) == 5 and sum(lengths) / 16 < 4.6
    for secret in range(3, 15):
        puzzle = Hidden(secret=secret, low=3, high=14, questions=5)
        assert play(puzzle, *puzzle.demonstration()).success
    assert NINE.steps()[0] == "from 7"


def test_the_shipped_model_knows_every_word_of_a_game():
    known = set(load_policy("base-puzzles").tokenizer.get_vocab())
    source = TwentyQuestions(questions=5)
    for task in source.sample(random.Random(0), 50):
        assert set(words_of(" ".join([task.goal, "yes no", *source.demonstrate(task)]))) <= known
        assert task.optimal == len(source.demonstrate(task)) <= 5


def test_ranges_are_held_out_and_every_number_of_them_is_hidden():
    source = TwentyQuestions(sizes=(4, 4, 4))
    games = [
        [Hidden.of(task) for task in tasks] for tasks in (source.sample(random.Random(0), 400), source.held_out(400))
    ]
    trained, tested = ({(game.low, game.high) for game in of} for of in games)
    assert trained and tested and not trained & tested
    for low, high in trained | tested:
        assert {g.secret for of in games for g in of if (g.low, g.high) == (low, high)} == set(range(low, high + 1))


def test_a_number_that_cannot_be_hidden_is_refused():
    with pytest.raises(ValidationError, match="one of the numbers from 2 to 4, got 5"):
        Hidden(secret=5, low=2, high=4, questions=5)


# Proposals


def said(trajectories: list[Trajectory]) -> list[list[list[int]]]:
    """What was sampled in each turn; the last bits of log-probabilities depend on what was read before."""
    return [[turn.sampled_ids for turn in t.turns] for t in trajectories]


class Asks(StateReplay):
    """Asks twice, and looks at what it is given."""

    def renew(self, drawn: list[Trajectory], rng: random.Random, experience: Experience) -> list[Trajectory]:
        played = [t.to_json() for t in drawn]
        found, again, others = (experience.propose(drawn, seed) for seed in (7, 7, 8))
        assert said(found) == said(again) != said(others)
        assert [t.to_json() for t in drawn] == played, "what was played is not changed"
        pairs = [
            (a, b) for t, other in zip(drawn, found, strict=True) for a, b in zip(t.turns, other.turns, strict=True)
        ]
        assert all(a.prompt_ids == b.prompt_ids and b.action is None and b.reward == 0 for a, b in pairs)
        assert {len(b.sampled_ids) for _, b in pairs} <= {1, 2, 3}  # of at most budget.turn_tokens
        samples = [Sample(b.prompt_ids, b.sampled_ids, {ADVANTAGES: [1.0] * len(b.sampled_ids)}) for _, b in pairs]
        for (_, b), now in zip(pairs, experience.logprobs(samples), strict=True):
            assert b.behaviour_logprobs == pytest.approx(now, abs=1e-5)
        memory = experience.memory(self)
        memory["turns"] = memory.get("turns", 0) + len(pairs)
        return found + others


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> File:
    return save_model(tmp_path_factory.mktemp("model") / "model")


def archer(model: File, **changes):
    """ArCHer on one page, which reads with the model that it begins with."""
    critic = DoubleValue(encoder=str(model), steps=2, warmup=1, batch_episodes=4, episodes=6)
    settings = {"replay": StateReplay(keep=6), "credit": TurnAdvantage(), "critic": critic, "iterations": 3}
    return make_recipe(model, **(settings | changes))


def test_proposals_are_what_the_policy_as_it_is_would_do_and_are_what_is_trained(model, tmp_path):
    """In every iteration: the policy moves in between."""
    train(archer(model, replay=Asks(keep=6)), tmp_path / "run")
    rows = rows_of(tmp_path / "run", "train")
    assert [row["trained_turns"] > 0 for row in rows] == [False, True, True]  # the critic learns alone at first
    assert all(row["action_value_loss"] > 0 and row["value_loss"] > 0 for row in rows)


def test_proposals_are_shared_out_among_the_processes_of_an_engine(
    model: File, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, generate = list[list[int]](), Engine.generate

    def spied(engine: Engine, requests: Sequence[Request]) -> list[Completion]:
        asked.append([request.ordinal for request in requests])
        return generate(engine, requests)

    monkeypatch.setattr(Engine, "generate", spied)
    train(archer(model, iterations=1), tmp_path / "run")
    proposed = [ordinals for ordinals in asked if len(ordinals) > 1]
    assert proposed and all(ordinals == list(range(len(ordinals))) for ordinals in proposed)


def test_every_turn_that_is_drawn_gets_as_many_proposals():
    problem, logits = chain()
    drawn = [episode_of(p, ordinal=k) for k, p in enumerate(problem.sample(logits, np.random.default_rng(0), 3))]
    found = StateReplay(proposals=2).renew(drawn, random.Random(0), Proposing(drawn, problem.policy(0 * logits)))
    assert [t.ordinal for t in found] == [0, 1, 2, 0, 1, 2] and found[:3] != found[3:]


def test_replay_draws_from_all_iterations():
    kept = [make_trajectory(ordinal=k).record() for k in range(40)]
    drawn = StateReplay(keep=10).draw(kept, 4, random.Random(0), Collected())
    assert [r.ordinal for r in drawn] == sorted({r.ordinal for r in drawn}) and len(drawn) == 10
    assert drawn[0].ordinal < 20 and StateReplay(keep=50).draw(kept, 4, random.Random(0), Collected()) == kept


def judged(*pairs: tuple[float, float], ordinal: int = 0) -> Trajectory:
    """An episode with a turn of two tokens for each Q and V."""
    turns = [make_turn([5, 6], estimates={"action_value": q, "value": v}) for q, v in pairs]
    return make_trajectory([*turns, make_turn([])], ordinal=ordinal)


def test_the_advantage_of_a_turn_is_q_less_the_mean_of_what_was_proposed_in_its_place():
    """Less V where one action alone was proposed."""
    pair = [judged((0.9, 0.0), (0.2, 0.0)), judged((0.1, 0.0), (0.3, 0.0))]
    found = [(s.episode, s.turn, s.advantages) for s in TurnAdvantage()([*pair, judged((0.8, 0.5), ordinal=1)])]
    expected = [(0, 0, 0.4), (0, 1, -0.05), (0, 0, -0.4), (0, 1, 0.05), (1, 0, 0.3)]
    assert found == [(episode, turn, pytest.approx([a, a])) for episode, turn, a in expected]
    assert TurnAdvantage()([]) == []


def test_with_the_exact_action_values_the_expected_step_is_the_exact_gradient():
    """Of two actions in the places that the policy itself comes to, over 2 - 1, since each is in its own baseline."""
    problem, logits = chain()
    policy_S_A, q_H_S_A = problem.policy(logits), problem.action_values(logits)
    total, visits = np.zeros_like(logits), 1.0
    for s in range(STATES):  # state s is only ever come to at step s
        for pair in itertools.product((0, 1), repeat=2):
            turns = [make_turn([a], [s], estimates={"action_value": q_H_S_A[s, s, a], "value": 0.0}) for a in pair]
            samples = TurnAdvantage()([make_trajectory([turn]) for turn in turns])
            chance = visits * policy_S_A[s, list(pair)].prod()
            total += chance * ascent_of(logits, samples, Reinforce(aggregation=Constant(per="episode")))
        visits *= DISCOUNT * policy_S_A[s, 0]
    np.testing.assert_allclose(total, problem.gradient(logits), atol=1e-5)


# The critic

STATES, DISCOUNT = 3, 0.9


def chain() -> tuple[EnumerableMDP, np.ndarray]:
    """Action 0 goes on, which earns 1 from the last state; action 1 gives up for 0.3. A policy that mostly goes on."""
    moves, rewards = np.zeros((STATES + 1, 2, STATES + 1)), np.zeros((STATES + 1, 2))
    for s in range(STATES):
        moves[s, 0, s + 1] = moves[s, 1, STATES] = 1
    moves[STATES, :, STATES], rewards[STATES - 1, 0], rewards[:STATES, 1] = 1, 1.0, 0.3
    problem = EnumerableMDP(moves, rewards, np.eye(STATES + 1)[0], np.arange(STATES + 1) == STATES, STATES, DISCOUNT)
    return problem, np.array([[2.0, 0.0]] * STATES + [[0.0, 0.0]])


class Proposing(Collected):
    """Episodes, and a policy that is a table: states are prompts of one token."""

    def __init__(self, trajectories: Sequence[Trajectory], policy_S_A: np.ndarray) -> None:
        super().__init__(trajectories)
        self.policy_S_A = policy_S_A

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        rng = np.random.default_rng(seed)

        def chosen(turn: Turn) -> Turn:
            return replace(turn, sampled_ids=[int(rng.choice(2, p=self.policy_S_A[turn.prompt_ids[0]]))])

        return [replace(t, turns=[chosen(turn) for turn in t.turns]) for t in trajectories]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("encoder") / "encoder"
    save_policy(tiny_policy("a b c", shape=TinyConfig(width=16, layers=2, heads=2, kv_heads=1, ffn=32)), folder)
    return str(folder)


def critic_of(encoder: str, seed: int = 0, **numbers) -> DoubleCritic:
    return DoubleCritic(DoubleValue.model_validate({"encoder": encoder, "discount": DISCOUNT, **numbers}), seed)


def learn(critic: DoubleCritic, experience: Experience, trajectories: Sequence[Trajectory] = (), seed: int = 0):
    return critic.before_update(CriticBatch(trajectories, TurnAdvantage(), experience, random.Random(seed)))


def every_turn() -> Trajectory:
    """Each action in each state."""
    return make_trajectory([make_turn([a], [s]) for s in range(STATES) for a in (0, 1)])


@pytest.mark.slow
def test_values_are_those_of_the_policy_as_it_is_learnt_from_episodes_of_another(encoder):
    problem, logits = chain()
    uniform = [
        episode_of(path, ordinal=k) for k, path in enumerate(problem.sample(0 * logits, np.random.default_rng(0), 60))
    ]
    critic, judged = critic_of(encoder, lr=3e-3, episodes=60, batch_episodes=60, steps=30), every_turn()
    for k in range(10):
        metrics = learn(critic, Proposing(uniform, problem.policy(logits)), [judged], seed=k)
    q_H_S_A = problem.action_values(logits)
    exact_S_A = np.array([q_H_S_A[s, s] for s in range(STATES)])  # state s is only ever come to at step s
    q_S_A = np.array([turn.estimates["action_value"] for turn in judged.turns]).reshape(STATES, 2)
    v_S = np.array([turn.estimates["value"] for turn in judged.turns[::2]])
    np.testing.assert_allclose(q_S_A, exact_S_A, atol=0.08)
    np.testing.assert_allclose(v_S, (problem.policy(logits)[:STATES] * exact_S_A).sum(1), atol=0.08)
    assert metrics["action_value_loss"] < 0.05


def test_targets_by_hand(encoder):
    """Rewards of turns and of the whole at its end, the value of the next state of the same episode, its own where a
    budget cut it, none where it ended; and Q of what is proposed."""
    critic = critic_of(encoder)
    long = make_trajectory([make_turn([0], [1], reward=0.5), make_turn([1], [2])], reward=1.5)
    cut = make_trajectory([make_turn([1], [4])], stop=StopReason.TURNS)
    proposed = [replace(t, turns=[replace(u, sampled_ids=[3]) for u in t.turns]) for t in (long, cut)]
    turns, q_2_N, v_2_N = critic.targets(list(zip((long, cut), proposed, strict=True)))
    assert turns == long.turns + cut.turns
    _, value_2_N = critic.target(turns)
    expected = torch.stack([0.5 + 0.9 * value_2_N[:, 1], torch.ones(2), 0.9 * value_2_N[:, 2]], 1)
    torch.testing.assert_close(q_2_N, expected)
    torch.testing.assert_close(v_2_N, critic.target([u for t in proposed for u in t.turns])[0])
    assert not q_2_N.requires_grad and not v_2_N.requires_grad


def test_an_estimate_is_the_smaller_of_two_and_exists_without_tokens_too(encoder):
    critic = critic_of(encoder)
    turns = [make_turn([3, 4], [1, 2]), make_turn([], [1, 2, 3, 4, 5]), make_turn([7], [1, 2, 3])]
    critic.estimate([make_trajectory(turns)])
    q_2_N, v_2_N = critic.online(turns)
    assert [turn.estimates["action_value"] for turn in turns] == pytest.approx(q_2_N.amin(0).tolist())
    assert [turn.estimates["value"] for turn in turns] == pytest.approx(v_2_N.amin(0).tolist())
    one_by_one = torch.cat([critic.online([turn])[0] for turn in turns], 1)
    torch.testing.assert_close(q_2_N, one_by_one, atol=1e-5, rtol=1e-4)
    critic.estimate([])


def test_targets_follow_by_tau_and_take_no_gradient(encoder):
    critic = critic_of(encoder, steps=1, tau=0.25, episodes=4)
    problem, logits = chain()
    episodes = [episode_of(p, ordinal=k) for k, p in enumerate(problem.sample(logits, np.random.default_rng(0), 4))]
    before = [p.clone() for p in critic.target.parameters()]
    learn(critic, Proposing(episodes, problem.policy(logits)))
    for old, target, online in zip(before, critic.target.parameters(), critic.online.parameters(), strict=True):
        torch.testing.assert_close(target, 0.75 * old + 0.25 * online.detach(), atol=1e-6, rtol=1e-5)
    nothing = learn(critic_of(encoder), Collected())
    assert nothing == {"action_value_loss": 0, "value_loss": 0}


def test_a_critic_restored_from_its_state_goes_on_as_it_would_have(encoder):
    problem, logits = chain()
    episodes = [episode_of(p, ordinal=k) for k, p in enumerate(problem.sample(logits, np.random.default_rng(0), 20))]
    experience, judged = Proposing(episodes, problem.policy(logits)), [every_turn(), every_turn()]
    one, other = critic_of(encoder, 0, steps=3), critic_of(encoder, 5, steps=3)
    learn(one, experience)
    kept = {name: value.clone() for name, value in one.state().items()}
    other.load_state(kept)
    for critic, t in zip((one, other), judged, strict=True):
        learn(critic, experience, [t], seed=1)
    assert [u.estimates for u in judged[0].turns] == [u.estimates for u in judged[1].turns]
    with pytest.raises(RunError, match="another critic: online/.* here, nothing there"):
        critic_of(encoder).load_state({})


# The run


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(model, tmp_path):
    recipe = archer(model, iterations=2)
    train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "resumed", Watcher(stop_after=2))
    train(recipe, tmp_path / "resumed", resume=True)
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "resumed")
    assert weights_hash(tmp_path / "whole") == weights_hash(tmp_path / "resumed")


def test_an_encoder_with_other_tokens_is_refused_before_anything_is_played(tmp_path):
    with pytest.raises(ModelError, match="critic: 'base' has another vocabulary than the policy"):
        RECIPE.replace(critic={"encoder": "base"}).train(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tasks", [TwentyQuestions(questions=3), pytest.param(Mastermind(), marks=pytest.mark.slow)])
def test_the_recipe_runs_on_both_games(tasks, tmp_path):
    recipe = RECIPE.replace(
        tasks=tasks,
        iterations=1,
        episodes_per_iteration=8,
        critic={"warmup": 0, "steps": 1},
        cloning={"episodes": 8},
        evaluation={"tasks": 2, "every": 1},
    )
    recipe.train(tmp_path / "run")
    (row,) = rows_of(tmp_path / "run", "train")
    assert row["trained_turns"] == 4 * sum(t.length for t in trajectories_of(tmp_path / "run")) > 4 * 8


@pytest.mark.parametrize(
    ("family", "member"), [(CriticConfig, DoubleValue(tau=0.2, warmup=0)), (type(RECIPE.replay), StateReplay(keep=3))]
)
def test_its_components_are_built_again_from_their_data(family, member):
    assert build(family, member.as_data()) == member
