"""ArCHer: the game of questions, proposals of the policy, what the critic learns and from what, the actor's credit, and
exact resume."""

import random
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
import torch
from estimators import episode_of
from helpers import (
    Collected,
    make_task,
    make_trajectory,
    make_turn,
    rows_of,
    tiny_model,
    tiny_policy,
    trajectories_of,
    weights_hash,
)
from one_page import Watcher, make_recipe, save_model
from pydantic import ValidationError

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, RunError
from longstride.core.experience import Experience
from longstride.core.trajectory import EpisodeRecord, Proposal, Trajectory, Turn
from longstride.engines.base import Sampling
from longstride.envs.exact.tabular import EnumerableMDP
from longstride.envs.puzzles import TwentyQuestions
from longstride.envs.puzzles.twenty_questions import Hidden, Question
from longstride.learner.critics import CriticBatch
from longstride.methods import OnPolicy, Reinforce, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.models.load import load_policy, save_policy
from longstride.models.tiny import TinyConfig, words_of
from longstride.recipes.agents import archer
from longstride.recipes.agents.archer import DoubleCritic, DoubleValue, ProposalCredit, UniformReplay
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


NINE = Hidden(secret=9, size=12, questions=5)


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
        explained, "error: unknown action 'hm'; use one of check", explained, "no",
    ]  # fmt: skip
    assert play(NINE, "Action: check 3", turns=4).stop == StopReason.TURNS


def test_the_solver_finds_every_number_and_halves():
    lengths = [len(Hidden(secret=k, size=16, questions=5).steps()) for k in range(1, 17)]
    assert max(lengths) == 5 and sum(lengths) / 16 < 4.6
    for secret in range(1, 13):
        puzzle = Hidden(secret=secret, size=12, questions=5)
        assert play(puzzle, *puzzle.demonstration()).success
    assert Question("from", 8) in [Question("from", int(step[5:])) for step in NINE.steps() if step.startswith("from")]


def test_the_shipped_model_knows_every_word_of_a_game():
    known = set(load_policy("base-puzzles").tokenizer.get_vocab())
    source = TwentyQuestions(questions=5)
    for task in source.sample(random.Random(0), 50):
        assert set(words_of(" ".join([task.goal, "yes no", *source.demonstrate(task)]))) <= known
        assert task.optimal == len(source.demonstrate(task)) <= 5


def test_a_number_that_cannot_be_hidden_is_refused():
    with pytest.raises(ValidationError, match="one of the numbers from 1 to 4, got 5"):
        Hidden(secret=5, size=4, questions=5)


# Proposals


class Asks(UniformReplay):
    """Draws what it may, and asks the policy what it would do in the first turn of each."""

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        drawn = super().draw(kept, fresh, rng, experience)
        prompts = [t.turns[0].prompt_ids for t in experience.read(drawn)]
        found, again = (experience.propose(prompts, 2, seed=7) for _ in range(2))
        assert found == again != experience.propose(prompts, 2, seed=8)
        assert all(1 <= len(p.sampled_ids) <= 2 for p in found)
        samples = [
            Sample(prompt, p.sampled_ids, {ADVANTAGES: [1.0] * len(p.sampled_ids)})
            for prompt, p in zip(prompts, found, strict=True)
        ]
        for p, now in zip(found, experience.logprobs(samples), strict=True):
            assert p.behaviour_logprobs == pytest.approx(now, abs=1e-5)
        experience.memory(self)["asked"] = experience.memory(self).get("asked", 0) + len(found)
        return drawn


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> File:
    return save_model(tmp_path_factory.mktemp("model") / "model")


def test_proposals_are_samples_of_the_policy_as_it_is_and_are_not_kept(model, tmp_path):
    """In every iteration: the policy has moved in between."""
    train(make_recipe(model, replay=Asks(keep=6), iterations=3), tmp_path / "asked")
    rows = rows_of(tmp_path / "asked", "train")
    assert len(rows) == 3 and all(row["steps"] for row in rows)
    assert not any(turn.proposals for t in trajectories_of(tmp_path / "asked") for turn in t.turns)


# The critic


SHAPE = TinyConfig(width=16, layers=2, heads=2, kv_heads=1, ffn=32, context=64)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("encoder") / "encoder"
    save_policy(tiny_policy("a b c", shape=SHAPE), folder)
    return str(folder)


class Proposing(Collected):
    """Episodes, and a policy that is a table of logits by the last id of the prompt."""

    def __init__(self, trajectories: Sequence[Trajectory], policy_S_A: np.ndarray) -> None:
        super().__init__(trajectories)
        self.policy_S_A = policy_S_A

    def propose(self, prompts: Sequence[list[int]], longest: int, seed: int) -> list[Proposal]:
        rng = np.random.default_rng(seed)
        chosen = [int(rng.choice(len(p), p=p)) for p in (self.policy_S_A[prompt[-1]] for prompt in prompts)]
        return [Proposal([a], [float(np.log(self.policy_S_A[prompt[-1]][a]))]) for prompt, a in zip(prompts, chosen, strict=True)]


STATES = 3


def chain() -> EnumerableMDP:
    """Action 0 goes on, which earns 1 from the last state; action 1 gives up for 0.3. Discount 0.9."""
    moves, rewards = np.zeros((STATES + 1, 2, STATES + 1)), np.zeros((STATES + 1, 2))
    for s in range(STATES):
        moves[s, 0, s + 1] = moves[s, 1, STATES] = 1
    moves[STATES, :, STATES], rewards[STATES - 1, 0], rewards[:STATES, 1] = 1, 1.0, 0.3
    return EnumerableMDP(moves, rewards, np.eye(STATES + 1)[0], np.arange(STATES + 1) == STATES, STATES, 0.9)
