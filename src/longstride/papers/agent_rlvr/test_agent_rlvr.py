"""Agent-RLVR: who is told what, what is trained of what was said with a hint, and a model and tasks of one's own."""

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from elsewhere import train_elsewhere
from helpers import Collected, make_planner, make_trajectory, make_turn, rows_of, run_stages, trajectories_of, word_chat

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError, OwnCodeError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.curriculum.tasks import Tasks
from longstride.envs.hidden import Bandits, Corridors
from longstride.envs.puzzles import ModularChain
from longstride.methods import PPO, GroupRelative
from longstride.methods.base import BEHAVIOUR, Sample
from longstride.models.load import load_policy
from longstride.papers.agent_rlvr.method import (
    GUIDED,
    HINT,
    ColumnHints,
    Guided,
    HintedTasks,
    Hints,
    HintsFollowed,
    SourceHints,
    WithoutHints,
)  # fmt: skip
from longstride.papers.agent_rlvr.recipe import CLAIM, RECIPE
from longstride.rollout import FullHistory, LatestObservation, Plan
from longstride.rollout.branching import Codec
from longstride.rollout.context import ContextPolicy, Past, PromptPieces

HOUSE = Corridors(rooms=2, doors=3, house=1)
CHAT = word_chat("reach the garden : attic cellar hall kitchen library parlour pantry study tower vault , ; doors amber"
                 " blue green grey pink red violet white Hint manual wall")  # fmt: skip
SAID = [[*CHAT.encode("amber"), *CHAT.close], [*CHAT.encode("blue"), *CHAT.close]]


class Told(Hints):
    """Tells whose attempts were long how many there were."""

    def of(self, source: Tasks, tasks: Sequence[Task], attempts: Sequence[Sequence[Trajectory]]) -> list[str]:
        return [f"red {len(of)}" if max(t.length for t in of) > 0 else "" for of in attempts]


class Unhelpful(Hints):
    """Has no hint for the last task, not even an empty one."""

    def of(self, source: Tasks, tasks: Sequence[Task], attempts: Sequence[Sequence[Trajectory]]) -> list[str]:
        return ["red"] * (len(tasks) - 1)


def prompts(goal: str, context: ContextPolicy | None = None, chat: PromptPieces = CHAT) -> list[list[int]]:
    """Of the two turns of an episode."""
    seen = ["attic", "hall"]
    return [(context or FullHistory()).render(chat, Past(goal, seen[: k + 1], [*SAID[:k]])) for k in range(len(SAID))]


def attempt(plan: Plan, reward: float, context: ContextPolicy | None = None, goal: str = "") -> Trajectory:
    """An episode of two turns; what the environment says of itself stands behind the goal."""
    goal = goal or f"{plan.task.goal}\nmanual"
    turns = [make_turn(ids, prompt) for ids, prompt in zip(SAID, prompts(goal, context), strict=True)]
    return make_trajectory(
        turns, reward, task=plan.task.model_copy(update={"goal": goal}), ordinal=plan.ordinal, group=plan.group,
        role=plan.role,
    )  # fmt: skip


def guided(
    sampler: Guided, solved: Sequence[int] = (0,), change: Callable[[Trajectory], Trajectory] = lambda t: t
) -> tuple[list[list[Plan]], list[Trajectory]]:
    """Plans by stage and episodes of groups of two, of which those of these numbers are solved without a hint, and the
    others by the second attempt with one."""

    def play(plan: Plan) -> Trajectory:
        done = plan.ordinal % 2 == 1 if plan.role == GUIDED else plan.group // 2 in solved
        return change(attempt(plan, float(done)))

    return run_stages(sampler.plan(make_planner(HOUSE, episodes=6, size=2, chat=CHAT)), play)


def test_tasks_that_no_attempt_solved_are_attempted_again_with_a_hint_in_the_same_group() -> None:
    (first, again), played = guided(Guided(attempts=3))
    assert {p.role for p in first} == {""} and {p.group for p in first} == {0, 2, 4}
    assert [p.group for p in again] == [2] * 3 + [4] * 3 and {p.role for p in again} == {GUIDED}
    tasks = {p.group: p.task for p in first}
    for p in again:
        task = tasks[p.group]
        assert p.task.goal == f"{task.goal}\nHint: {HOUSE.hint(task)}" and p.task.meta == task.meta
        assert p.seed == next(q.seed for q in first if q.group == p.group), "they begin as the others began"
    assert len(played) == 12 and [HINT in t.evidence for t in played] == [False] * 6 + [True] * 6
    assert len(guided(Guided(), solved=(0, 1, 2))[0]) == 1
    assert len(guided(Guided())[0][1]) == 4, "as many as without a hint"


def test_hints_of_ones_own_see_the_attempts_and_may_be_none() -> None:
    (_, again), _ = guided(Guided(hints=Told(), words=" ; {hint}"))
    assert {p.task.goal.rpartition(" ; ")[2] for p in again} == {"red 2"}
    silent = guided(Guided(hints=Told()), change=lambda t: replace(t, turns=[]))
    assert len(silent[0]) == 1
    with pytest.raises(OwnCodeError, match="Unhelpful gives 1 hints for 2 tasks"):
        guided(Guided(hints=Unhelpful()))


def test_hints_are_of_a_source_that_knows_them_or_of_a_column() -> None:
    task = ModularChain().sample(random.Random(0), 1)[0]
    with pytest.raises(ConfigError, match="Bandits has no `hint`: write one"):
        SourceHints().of(Bandits(), [task], [()])
    rows = [task.model_copy(update={"meta": meta}) for meta in ({"why": "a"}, {"why": None}, {})]
    assert ColumnHints(column="why").of(ModularChain(), rows, [()] * 3) == ["a", "", ""]
    with pytest.raises(ConfigError, match="expected a text in 'why', got 3"):
        ColumnHints(column="why").of(ModularChain(), [task.model_copy(update={"meta": {"why": 3}})], [()])


class Known(Collected):
    """A policy that gives token i log-probability -i / 80 after a prompt of an even number of ids, and -i / 40 else."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Sample] = []

    def logprobs(self, samples: Sequence[Sample]) -> list[list[float]]:
        self.asked += samples
        return [[-i / (80 if len(s.prompt_ids) % 2 == 0 else 40) for i in s.sampled_ids] for s in samples]


def test_without_the_hint_prompts_are_those_that_the_policy_reads_without_and_so_are_old_log_probabilities() -> None:
    (first, _), played = guided(Guided())
    plain = {p.group: f"{p.task.goal}\nmanual" for p in first}
    before = [t.to_json() for t in played]
    policy = Known()
    found = WithoutHints().renew(played, random.Random(0), policy)
    assert [t.to_json() for t in played] == before, "what was played stays what it was"
    assert found[:6] == played[:6], "attempts without a hint are trained as they were played"
    for t in found[6:]:
        wanted = prompts(plain[t.group])
        assert [turn.prompt_ids for turn in t.turns] == wanted and [turn.sampled_ids for turn in t.turns] == SAID
        scales = [80 if len(prompt) % 2 == 0 else 40 for prompt in wanted]
        assert [turn.behaviour_logprobs for turn in t.turns] == [
            pytest.approx([-i / n for i in ids]) for n, ids in zip(scales, SAID, strict=True)
        ]
    assert [s.prompt_ids for s in policy.asked] == [turn.prompt_ids for t in found[6:] for turn in t.turns]


def test_divided_by_the_policy_that_had_the_hint_a_token_weighs_its_importance() -> None:
    """Sampled with probability 1 / e with the hint, and exp(-i / 80) or exp(-i / 40) without."""
    _, played = guided(Guided())
    policy = Known()
    for replay in (WithoutHints(), WithoutHints(old="hinted")):
        trained = replay.renew(played[6:8], random.Random(0), policy)
        won = GroupRelative(baseline="none", normalize="none")(trained)[2]  # the first turn of the success
        assert won.advantages == [1.0, 1.0] and won.prompt_ids == trained[1].turns[0].prompt_ids
        (logprobs,) = policy.logprobs([won])
        streams = {name: torch.tensor(values) for name, values in won.streams.items()}
        tokens: Any = SimpleNamespace(streams=streams)
        terms = PPO(clip_high=1e9).policy_terms(torch.tensor(logprobs), tokens)
        ratios = [math.exp(own + 1) if replay.old == "hinted" else 1.0 for own in logprobs]
        assert (-terms.loss_P).tolist() == pytest.approx(ratios, rel=1e-5)
    assert won.streams[BEHAVIOUR] == [-1.0, -1.0]


class Pairs:
    """A tokenizer of two characters a token, which cuts behind a hint otherwise than it would without."""

    def encode(self, text: str) -> list[int]:
        return [int.from_bytes(text[k : k + 2].encode("latin-1")) for k in range(0, len(text), 2)]

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(i.to_bytes(2).lstrip(b"\0") for i in ids).decode("latin-1")

    verbatim = decode


@pytest.mark.parametrize("behind", ["", "\nmanual"])
@pytest.mark.parametrize("words", [" odd", " even"])
def test_a_hint_is_taken_out_exactly_whatever_the_tokenizer_makes_of_its_ends(words: str, behind: str) -> None:
    chat: Codec = Pairs()
    task = HOUSE.sample(random.Random(0), 1)[0]

    def play(plan: Plan) -> Trajectory:
        goal = plan.task.goal + behind
        turn = make_turn([5], [1, 2, *chat.encode(goal), 3])
        return make_trajectory([turn], 0.0, task=task.model_copy(update={"goal": goal}), group=plan.group)

    planner = make_planner(HOUSE, episodes=1, size=1, chat=chat)
    (first, _), played = run_stages(Guided(words=words + "{hint}").plan(planner), play)
    (t,) = WithoutHints(old="hinted").renew(played[1:], random.Random(0), Collected())
    assert t.turns[0].prompt_ids == [1, 2, *chat.encode(first[0].task.goal + behind), 3]


def test_goals_that_an_environment_makes_up_and_contexts_without_a_goal_are_refused() -> None:
    with pytest.raises(ConfigError, match="the environment of hidden/corridor makes up goals itself"):
        guided(Guided(), change=lambda t: replace(t, task=t.task.model_copy(update={"goal": "another goal"})))
    with pytest.raises(ConfigError, match="which the recipe's context has to show at one place in every prompt"):
        guided(Guided(), change=lambda t: replace(t, turns=[*t.turns, make_turn([1], [7, 7])]))

    def newest(t: Trajectory) -> Trajectory:
        """Of a context that makes prompts anew, which is none of these."""
        return replace(t, turns=[make_turn(SAID[0], prompt) for prompt in prompts(t.task.goal, LatestObservation())])

    assert len(guided(Guided(), change=newest)[1]) == 10


def test_an_attempt_that_failed_for_want_of_infrastructure_says_nothing() -> None:
    def broken(t: Trajectory) -> Trajectory:
        return replace(t, stop=StopReason.INFRA_FAILURE, turns=[], success=False)

    assert len(guided(Guided(), change=broken)[0]) == 1
    _, played = guided(Guided(), change=lambda t: broken(t) if t.role == GUIDED else t)
    assert len(played) == 10 and not any(HINT in t.evidence for t in played)


def test_a_model_that_cannot_read_hints_is_shown_how_they_are_followed_on_tasks_of_another_source() -> None:
    own = HintedTasks(tasks=Corridors(rooms=2, doors=3), words=" ; {hint}")
    (task,) = own.held_out(1)
    assert task.goal.endswith(f" ; {own.tasks.hint(task)}")  # pyright: ignore[reportAttributeAccessIssue]
    chat = load_policy("base-trials").chat
    found = HintsFollowed(tasks=own).samples(RECIPE, chat, 20, random.Random(0))
    assert len(found) == 40
    for first, second in zip(found[::2], found[1::2], strict=True):
        read, doors = chat.decode(first.prompt_ids), [chat.decode(s.sampled_ids) for s in (first, second)]
        hint = [pair.split() for pair in read.rpartition(" ; ")[2].split(" , ")]
        assert [words[1] for words in hint] == doors, read
    with pytest.raises(ConfigError, match="tasks Bandits know no solutions"):
        HintedTasks(tasks=Bandits()).demonstrate(task)


OWN = ("cloning=", 'sampler.words=" click {hint}"', "iterations=1", "group_size=2", "episodes_per_iteration=32")
"""A step of all samples."""
AT_ONCE = ("learner.epochs=1", "learner.batch_samples=1000")


def test_it_trains_another_model_on_other_tasks_and_hints_of_ones_own_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere("agent_rlvr", tmp_path, *OWN, *AT_ONCE, f"sampler.hints.type={Told.__module__}:Told")
    played = trajectories_of(run)
    again = [t for t in played if t.role == GUIDED]
    assert {t.success for t in again} == {True, False} and {t.task.goal for t in again} == {"red lamp click red 2"}
    assert not {t.group for t in again} & {t.group for t in played if t.success and t.role != GUIDED}
    (row,) = rows_of(run, "train")
    assert row["grad_norm"] > 0 and row["ratio_max"] == pytest.approx(1, abs=1e-4)


def test_ratios_to_the_policy_that_had_the_hint_do_not_begin_at_one(tmp_path: Path) -> None:
    told = f"sampler.hints.type={Told.__module__}:Told"
    run = train_elsewhere("agent_rlvr", tmp_path, *OWN, *AT_ONCE, told, "replay.old=hinted")
    (row,) = rows_of(run, "train")
    assert row["ratio_max"] > 1.01


def test_hints_stand_in_a_column_of_a_file(tmp_path: Path) -> None:
    rows = [{"prompt": f"home {'red ' * k}", "answer": "yes", "hint": "lamp"} for k in range(24)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = ["tasks.type=dataset", f"tasks.path={path}", 'tasks.keep=["hint"]', "tasks.test_share=0.4"]
    run = train_elsewhere("agent_rlvr", tmp_path, *OWN, *data, "sampler.hints.type=column_hints")
    again = [t for t in trajectories_of(run) if t.role == GUIDED]
    assert again and all(t.task.goal.endswith(" click lamp") and HINT in t.evidence for t in again)


def test_arms_differ_in_guidance_and_in_the_rooms_that_have_to_be_passed() -> None:
    assert set(CLAIM.changes("rl")) == {"sampler", "replay", "iterations"}
    assert list(CLAIM.changes("kept")) == ["replay"]
    assert set(CLAIM.changes("guided_2")) == {"tasks.rooms", "cloning.demonstrations.tasks.tasks.rooms"}
    assert set(CLAIM.changes("rl_2")) == set(CLAIM.changes("rl")) | set(CLAIM.changes("guided_2"))
