"""Branching: where thoughts are cut, what begins there, and the pages that train on it."""

import json
from collections.abc import Sequence

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.base import TaskSource
from longstride.envs.puzzles import ModularChain
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.recipes import mrt, pope
from longstride.rollout.branching import ForcedTermination, OraclePrefix, cuts
from longstride.rollout.planning import Planner
from longstride.rollout.store import TrajectoryStore
from longstride.run.loop import train
from longstride.run.recipe import Recipe

CHAINS = ModularChain(lengths=(8, 8, 8))


class Words:
    """A chat format in which a word is an id."""

    def __init__(self):
        self.words: list[str] = []

    def encode(self, text):
        self.words += [w for w in dict.fromkeys(text.split()) if w not in self.words]
        return [self.words.index(w) for w in text.split()]

    def decode(self, ids: Sequence[int]):
        return " ".join(self.words[i] for i in ids)


def planner(chat, source: TaskSource = CHAINS, episodes=8, size=4):
    return Planner(source, lambda task: Budget(turns=1), chat, 0, 1, 0, episodes, size)


def played(plan, reward=0.0, said=()):
    turn = Turn([], list(said), [0.0] * len(said), [0] * len(said), "", "")
    return Trajectory(plan.task, plan.ordinal, plan.seed, plan.budget, [turn], StopReason.ANSWERED, reward=reward,
                      group=plan.group, prefix=list(plan.prefix), role=plan.role)  # fmt: skip


def outcome(stages, rewards, said=()):
    """Sends each stage's plans back with rewards by a function of the plan; all plans, and what is returned."""
    plans, stage = [], next(stages)
    while True:
        plans.append(stage)
        try:
            stage = stages.send([played(p, rewards(p), said) for p in stage])
        except StopIteration as e:
            return plans, e.value


@pytest.fixture
def chat():
    return Words()


def test_a_thought_is_cut_before_its_marks(chat):
    ids = chat.encode("Thought: 3 + 4 = 7 ; 7 * 2 = 3 ; no Action: answer 3")
    assert [chat.decode(ids[:k]) for k in cuts(chat, ids, (";", "Action:"))] == [
        "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3", "Thought: 3 + 4 = 7 ; 7 * 2 = 3 ; no",
    ]  # fmt: skip


class TestOraclePrefix:
    @pytest.mark.parametrize(
        ("share", "checkpoints", "steps"),
        [(0.25, 4, [1, 2]), (0.25, 1, [2]), (0.5, 4, [1, 2, 3, 4]), (0.95, 4, [2, 4, 6]), (0.01, 2, [1])],
    )
    def test_beginnings_are_whole_steps_up_to_a_share_of_eight_and_never_all(self, chat, share, checkpoints, steps):
        solution = CHAINS.demonstrate(CHAINS.held_out(1)[0])[0]
        found = OraclePrefix(share=share, checkpoints=checkpoints).beginnings(chat, solution)
        assert [chat.decode(ids) for ids in found] == [" ; ".join(solution.split(" ; ")[:n]) for n in steps]

    def test_what_is_solved_is_left_alone_and_the_rest_guided_from_the_shortest_beginning_on(self, chat):
        # groups 0, 4, 8: the first is solved by one episode; of the others one needs the second beginning
        sampler = OraclePrefix(share=0.5, checkpoints=2)
        plans, episodes = outcome(sampler.stages(planner(chat, episodes=12)), lambda p: float(p.ordinal in (1, 13, 23)))
        assert [[p.group for p in stage[::4]] for stage in plans] == [[0, 4, 8], [12, 16], [20]]
        assert [t.ordinal for t in episodes] == list(range(24))
        assert [stage[0].role for stage in plans] == ["", "guided", "guided"]
        guided, longer = plans[1], plans[2]
        assert [p.task for p in guided[::4]] == [p.task for p in plans[0][4::4]] and longer[0].task == guided[4].task
        begun = chat.decode(guided[4].prefix)
        assert chat.decode(longer[0].prefix).startswith(begun + " ;")
        assert CHAINS.demonstrate(guided[4].task)[0].startswith(begun)

    def test_all_tasks_are_guided_where_none_is_played_without(self, chat):
        plans, _ = outcome(OraclePrefix(unguided=False, checkpoints=1).stages(planner(chat)), lambda p: 1.0)
        assert len(plans) == 1 and all(p.prefix and p.role == "guided" for p in plans[0])

    def test_it_ends_where_no_beginning_is_left(self, chat):
        plans, _ = outcome(OraclePrefix(share=0.1, checkpoints=4).stages(planner(chat)), lambda p: 0.0)
        assert len(plans) == 2  # one step is all that a tenth of eight can be

    def test_tasks_without_known_solutions_are_refused(self, chat):
        with pytest.raises(ConfigError, match="oracle_prefix shows the beginning.*embedded_web know none"):
            next(OraclePrefix().stages(planner(chat, EmbeddedWeb())))


class TestForcedTermination:
    def test_a_group_begins_where_the_trace_was_cut_and_half_of_it_must_answer(self, chat):
        said = chat.encode("Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3")
        plans, episodes = outcome(ForcedTermination().stages(planner(chat, episodes=40)), lambda p: 0.0, said)
        traces, groups = plans
        assert [p.role for p in traces] == ["trace"] * 10 and not any(p.prefix for p in traces)
        assert len(episodes) == 50 and [p.ordinal for p in groups] == list(range(10, 50))
        begun = set()
        for trace, k in zip(traces, range(0, 40, 4), strict=True):
            group = groups[k : k + 4]
            assert {(p.task.id, p.group) for p in group} == {(trace.task.id, group[0].ordinal)}
            assert [p.role for p in group] == ["forced", "forced", "go_on", "go_on"]
            start = chat.decode(group[2].prefix)
            assert [chat.decode(p.prefix) for p in group] == [f"{start} Action: answer".strip()] * 2 + [start] * 2
            begun.add(start)
        assert begun == {"", "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3"}  # whichever ten draws take

    def test_a_trace_that_said_nothing_is_begun_at_its_start(self, chat):
        plans, _ = outcome(ForcedTermination(forced=0.25).stages(planner(chat)), lambda p: 0.0)
        assert [chat.decode(p.prefix) for p in plans[1][:4]] == ["Action: answer", "", "", ""]

    def test_it_can_ask_for_answers_at_every_place(self, chat):
        said = chat.encode("Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3")
        sampler = ForcedTermination(forced=1.0, everywhere=True)
        _, answers = outcome(sampler.stages(planner(chat, episodes=4)), lambda p: 0.0, said)[0]
        assert {p.role for p in answers} == {"forced"}
        assert [chat.decode(p.prefix).removesuffix("Action: answer").strip() for p in answers[::4]] == [
            "", "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3",
        ]  # fmt: skip

    def test_who_must_answer_has_room_for_an_answer_and_for_no_more_thought(self, chat):
        said = chat.encode("Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3")
        plans = planner(chat, episodes=4)
        (trace,), group = outcome(ForcedTermination(longest=5).stages(plans), lambda p: 0.0, said)[0]
        for plan in group:
            if plan.role == "go_on":
                assert plan.budget == trace.budget
            else:
                assert plan.budget.turn_tokens == len(plan.prefix) + 5 and plan.budget.tokens is None


SMALL = ["iterations=1", "episodes=16", "evaluation.tasks=3", "evaluation.strategies=[{type='direct'}]"]


def run(recipe, folder):
    train(resolve(Recipe, recipe, SMALL), folder)
    (row,) = [r for r in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()) if r["kind"] == "train"]
    store = TrajectoryStore(folder / "trajectories.jsonl")
    return list(store.read(range(len(store)))), row


def test_the_pope_page_shows_beginnings_of_solutions_of_what_was_not_solved(tmp_path):
    episodes, _ = run(pope.RECIPE, tmp_path / "run")
    solved = {t.task.id for t in episodes if not t.role and t.success}
    guided = [t for t in episodes if t.role == "guided"]
    assert guided and not solved & {t.task.id for t in guided}
    assert all(t.prefix and t.turns[0].prompt_ids[-len(t.prefix) :] == t.prefix for t in guided)


def test_the_mrt_page_trains_answers_and_what_goes_on_but_no_trace(tmp_path):
    episodes, row = run(mrt.RECIPE, tmp_path / "run")
    roles = [t.role for t in episodes]
    assert [roles.count(role) for role in ("trace", "forced", "go_on")] == [2, 8, 8]
    assert row["trained_turns"] <= 16 * mrt.RECIPE.learner.epochs
    assert all(t.turns[0].text.split("Action:")[1].startswith(" answer") for t in episodes if t.role == "forced")
