"""Search by sub-goals: from one to the next, replanned where one is out of reach, and plain where a planner is of no use."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chat_server import ChatServer, text_of
from helpers import make_trajectory, make_turn

from longstride.cli.evaluate import strategies
from longstride.core.budget import Budget, StopReason
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Usage
from longstride.engines.local import LocalEngine
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.puzzles.modular import Chain, ModularChain
from longstride.models.load import load_policy
from longstride.papers.bfs_prover.method import LONGEST, PROMPT, SubGoals, SubGoalTask, sub_goals_in
from longstride.papers.grpo import recipe as grpo
from longstride.rewards.scorers import Score
from longstride.rollout import Plan, ScriptedPlayer
from longstride.rollout.episode import Episode, Generation
from longstride.run.evaluation import Result, evaluate_player, language_player
from longstride.strategies.base import EvalPlan
from longstride.strategies.delegate import HANDED
from longstride.strategies.search import Beam, BestFirst, Partial, Search, Searching, TreeSearch
from longstride.strategies.searched import Checked, Confidence, Guide, Oracle, Searched

DIALS, DIGITS = 4, 4


class Lock:
    """Opens where every dial was set as the task wants it; it says nothing before."""

    async def reset(self, task: Task, seed: int) -> Observation:
        assert task.meta.keys() == {"right"}, "a world never sees what a planner is asked"
        self.right, self.said = task.meta["right"], list[str]()
        return Observation("a lock")

    async def step(self, text: str) -> Step:
        self.said.append(text)
        over = len(self.said) == DIALS
        opens = over and self.said == self.right
        return Step(
            Observation(f"{len(self.said)} set"), float(opens), over, action=text, answer=text if over else None
        )

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


class Locks(TaskSource):
    def held_out(self, n: int) -> list[Task]:
        return [self._task(k) for k in range(n)]

    def env(self) -> Lock:
        return Lock()

    def _task(self, k: int) -> Task:
        right = [f"set {d} to {random.Random(k * DIALS + d).randrange(DIGITS)}" for d in range(DIALS)]
        return Task(id=str(k), source="locks", goal="open it", start="", meta={"right": right})


LOCKS = Locks().held_out(6)
RECIPE = grpo.RECIPE.replace(tasks=Locks(), test_budget={"turns": DIALS}, evaluation={"measures": ()})
STEP, PLAN = Usage(1, read=5, sampled=3), Usage(1, read=11, sampled=7)
Planner = Callable[[Episode], str]


class Blind(Guide):
    """Finds everything even, for two tokens that it samples and one that it reads."""

    def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
        return [Score(0.5, 2, 1) for _ in solutions]


SEARCH = BestFirst(expansions=12, width=12, finish=10**6)
"""Draws enough at a place to see a digit of four, and cannot tell which is right."""


class Bench:
    """Plays locks: steps at random, plans by a script; counts what both take."""

    def __init__(self, planner: Planner = lambda episode: "") -> None:
        self.planner, self.steps, self.plans = planner, 0, 0
        self.asked: list[str] = []

    def say(self, episode: Episode) -> Generation:
        if episode.plan.role == HANDED:
            self.plans += 1
            self.asked.append(str(episode.observations[-1]))
            return Generation([], [], [], [], self.planner(episode), usage=PLAN)
        self.steps += 1
        digit = random.Random(episode.turn_seed).randrange(DIGITS)
        return Generation([], [], [], [], f"set {episode.turns} to {digit}", usage=STEP)

    def play(self, strategy: Searched, tasks: Sequence[Task] = LOCKS) -> Result:
        return evaluate_player(ScriptedPlayer(self.say), RECIPE, tasks, strategy)


def measured(result: Result, name: str) -> list[float]:
    """Of each task; none failed."""
    return [value for value in result.measures[name] if value is not None]


def right(episode: Episode) -> str:
    """A planner that knows how."""
    return "\n".join(
        f"{k}. Set {d} to {x[-1]}." for k, x in enumerate(episode.plan.task.meta["right"], 1) for d in (k - 1,)
    )


def planned(search: Search = SEARCH, **settings: Any) -> SubGoals:
    return SubGoals(search=search, guide=Blind(), mark="", **settings)


def test_a_plan_leads_where_a_search_of_the_same_cost_does_not() -> None:
    led = Bench(right).play(planned())
    cost = measured(led, "spent_tokens")
    plain = Bench().play(Searched(search=SEARCH.replace(expansions=20), guide=Blind(), mark=""))
    assert all(v >= c for v, c in zip(measured(plain, "spent_tokens"), cost, strict=True))
    assert led.summary["success"] == 1 and plain.summary["success"] == 0
    assert measured(led, "reached") == [4] * 6 and sum(n == 0 for n in measured(led, "replans")) >= 5


@pytest.mark.parametrize(
    "search", [Beam(n=24, width=12), TreeSearch(expansions=4, width=24)], ids=lambda search: search.type_name()
)
def test_every_search_goes_from_sub_goal_to_sub_goal_and_all_tokens_are_counted(search: Search) -> None:
    bench = Bench(right)
    found = bench.play(planned(search), LOCKS[:3])
    assert found.summary["success"] == 1 and bench.plans == 3
    spent, total = (sum(measured(found, name)) for name in ("spent_tokens", "total_tokens"))
    assert spent == bench.steps * (STEP.sampled + 2) + bench.plans * PLAN.sampled
    assert total == spent + bench.steps * 1 + bench.plans * PLAN.read
    assert measured(found, "planner_tokens") == [18] * 3 and sum(measured(found, "steps")) == bench.steps


def test_two_evaluations_are_equal() -> None:
    a, b = (Bench(right).play(planned()) for _ in range(2))
    assert a.measures == b.measures
    assert [[t.text for t in e.turns] for e in a.trajectories] == [[t.text for t in e.turns] for e in b.trajectories]


def test_a_planner_is_asked_again_and_told_what_is_reached_and_what_is_not() -> None:
    def errs_once(episode: Episode) -> str:
        goals = episode.plan.task.meta["right"]
        again = "Not reached" in str(episode.observations[-1])
        return "\n".join(goals) if again else f"{goals[0]}\nset 9 to 9\n{goals[1]}"

    bench = Bench(errs_once)
    found = bench.play(planned(), LOCKS[:2])
    assert found.summary["success"] == 1 and measured(found, "replans") == [1, 1] and bench.plans == 4
    assert measured(found, "reached") == [4, 4] and measured(found, "sub_goals") == [3 + 3] * 2
    first, again = bench.asked[0], bench.asked[-1]
    assert first.startswith("a lock\nDo not solve") and "Reached" not in first
    goal = LOCKS[1].meta["right"][0]
    assert f"Reached: {goal}\nNot reached: set 9 to 9\nWhere it stands: {goal}" in again
    # who may not be asked again searches for the answer from where it is
    kept = Bench(errs_once).play(planned(replans=0), LOCKS[:2])
    assert measured(kept, "replans") == [0, 0] and measured(kept, "reached") == [1, 1]
    assert [t.turns[0].text for t in kept.trajectories] == [task.meta["right"][0] for task in LOCKS[:2]]
    stuck = Bench(lambda episode: "set 9 to 9").play(planned(search=SEARCH.replace(expansions=2), replans=3), LOCKS[:1])
    assert (
        measured(stuck, "replans") == [3] and measured(stuck, "sub_goals") == [4] and measured(stuck, "reached") == [0]
    )


@pytest.mark.parametrize(
    "reply", ["", " \n\t\n", "---\n***\n1.\n", "x" * 10**6, "\0\u202e" * LONGEST, "<think>\nnever"]
)
def test_a_planner_of_no_use_leaves_the_search_as_it_is_without_it(reply: str) -> None:
    search = SEARCH.replace(expansions=4)
    led, plain = (
        Bench(lambda episode: reply).play(planned(search)),
        Bench().play(Searched(search=search, guide=Blind(), mark="")),
    )
    said = [[[turn.text for turn in t.turns] for t in of.trajectories] for of in (led, plain)]
    assert said[0] == said[1] and measured(led, "steps") == measured(plain, "steps")
    assert measured(led, "sub_goals") == [0] * 6
    extra = zip(measured(led, "spent_tokens"), measured(plain, "spent_tokens"), strict=True)
    assert [a - b for a, b in extra] == [PLAN.sampled] * 6


def test_of_a_reply_so_many_short_lines_are_read() -> None:
    assert sub_goals_in("1. X = 5.\n\n- x=5\n* y  =  - 2\n(z)", 8) == ["x=5", "y=-2", "(z)"]
    assert sub_goals_in("6 - 3 = 3", 8) == ["6-3=3"]
    assert sub_goals_in("a\n" + "b" * (LONGEST + 1) + "\nc\nd", 2) == ["a", "c"]
    assert sub_goals_in("<think>no</think>1 + 1 = 2 ; 3 + 4 = 0 ;", 8, ";") == ["1+1=2", "3+4=0"]
    hostile = sub_goals_in("\n".join(f"({k}*.?[" for k in range(10**5)), 5)
    assert hostile == [f"({k}*.?[" for k in range(5)]


@pytest.mark.parametrize(
    ("goal", "seen"),
    [("x=1", "so x=1, y=2"), ("x=1", "x=1"), ("(a.*b", "is (a.*b)"), ("1", "is 1."), ("go north", "go north")],
)
def test_a_sub_goal_is_looked_for_as_whole_words_and_numbers(goal: str, seen: str) -> None:
    task = SubGoalTask(Plan(LOCKS[0], 0, 0, Budget()), driven_by_nobody(), (), goals=[goal])
    assert task.reaches(seen)
    assert not any(task.reaches(f"{before}{goal}{after}") for before, after in (("a", ""), ("", "0"), ("", "s")))
    number = replace(task, goals=["1"])
    assert not number.reaches("1.5") and not number.reaches("2.1") and not number.reaches("11")


def driven_by_nobody() -> Searching:
    return SEARCH.run(Partial(None), np.random.default_rng(0))


def begun(reply: str, **settings: Any) -> tuple[EvalPlan, Sequence[Plan]]:
    """A lock whose planner has said this, and the first plans of its search."""
    stages = planned(BestFirst(expansions=3, width=2), **settings).run(
        [Plan(LOCKS[0], 0, 0, Budget(turns=DIALS))], ScriptedPlayer(lambda episode: "")
    )
    (question,) = next(stages)
    assert question.role == HANDED and question.budget.turns == 1 and question.budget.turn_tokens == 256
    return stages, stages.send([make_trajectory([make_turn(text=reply)], task=question.task)])


def came(plan: Plan, text: str, stop: StopReason = StopReason.TURNS) -> Trajectory:
    past = [make_turn(text=turn.text) for turn in plan.history]
    return make_trajectory([*past, make_turn(text=text)], task=plan.task, ordinal=plan.ordinal, stop=stop)


def test_a_search_goes_on_from_the_best_that_reached_its_sub_goal_and_is_not_ended_by_what_ended_before() -> None:
    stages, first = begun("turn the key")
    again = stages.send([came(first[0], "leave", StopReason.ANSWERED), came(first[1], "knock")])
    assert [turn.text for p in again for turn in p.history] == ["knock"] * 2
    last = stages.send([came(again[0], "wait"), came(again[1], "now turn  the KEY.")])
    assert [[turn.text for turn in p.history] for p in last] == [["knock", "now turn  the KEY."]] * 2
    # the last sub-goal may be the end of a solution, which counts then
    stages, first = begun("leave")
    with pytest.raises(StopIteration) as end:
        stages.send([came(first[0], "leave", StopReason.ANSWERED), came(first[1], "knock")])
    (found,) = end.value.value
    assert found.trajectory.turns[-1].text == "leave" and found.measures["reached"] == 1
    # where steps are turns, what is seen counts too, but for the first page
    stages, first = begun("page")
    again = stages.send([came(p, "knock") for p in first])
    assert {p.ordinal for p in again}.isdisjoint({p.ordinal for p in first}) and len(again[0].history) == 1
    last = stages.send([came(p, "wait") for p in again])
    assert len(last[0].history) == 2


def test_a_verified_solution_ends_the_search_whatever_was_planned() -> None:
    search = planned().replace(guide=Checked(guide=Blind()), search=SEARCH.replace(expansions=500), replans=0)
    one = Task(id="one", source="locks", goal="open it", start="", meta=LOCKS[0].meta)
    found = Bench(lambda episode: f"{one.meta['right'][0]}\nset 9 to 9").play(search, [one])
    assert found.trajectories[0].success and measured(found, "reached") == [1]
    assert measured(found, "steps")[0] < 12 * 500


def test_with_a_model_that_plans_for_itself_all_that_is_sampled_is_counted() -> None:
    policy, tasks = load_policy("base-puzzles"), ModularChain().held_out(3)
    recipe = grpo.RECIPE.replace(tasks=ModularChain())
    engine = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
    player = language_player(policy, recipe, engine, testing=True)
    strategy = SubGoals(search=BestFirst(expansions=4, width=2), guide=Confidence(), reply_tokens=40)
    found = evaluate_player(player, recipe, tasks, strategy)
    assert engine.tokens_out == sum(measured(found, "spent_tokens"))
    assert sum(measured(found, "sub_goals")) > 0 and all(n > 0 for n in measured(found, "planner_tokens"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    server = ChatServer()
    yield server
    server.stop()


def test_another_model_plans_here_or_behind_a_chat_api(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    policy, task = load_policy("base-puzzles"), ModularChain(lengths=(3, 3, 3)).held_out(1)[0]
    recipe = grpo.RECIPE.replace(tasks=ModularChain())
    loaded: list[str] = []
    strategy = SubGoals(search=BestFirst(expansions=8, width=8), guide=Oracle(), planner="other", reply_tokens=20)
    player = language_player(policy, recipe, testing=True)
    found = evaluate_player(player, recipe, [task], strategy, loading=lambda name: loaded.append(name) or policy)
    assert loaded == ["other"] and measured(found, "planner_tokens")[0] > 0
    server.model = lambda body: "\n".join(Chain.of(task).steps()[:2])
    found = evaluate_player(player, recipe, [task], strategy.replace(planner=server.api()))
    assert task.goal in text_of(server.bodies[0]) and PROMPT in text_of(server.bodies[0])
    assert measured(found, "sub_goals") == measured(found, "reached") == [2]
    assert found.trajectories[0].success
    # the server counts words, and the two steps of a plan are some twenty
    assert measured(found, "planner_tokens")[0] > 20
    assert measured(found, "total_tokens")[0] > measured(found, "spent_tokens")[0]


def test_a_planner_that_fails_or_has_no_room_leaves_the_plain_search() -> None:
    for stop, turns in ((StopReason.INFRA_FAILURE, 1), (StopReason.CONTEXT, 0)):
        stages = planned().run([Plan(LOCKS[0], 0, 0, Budget(turns=DIALS))], ScriptedPlayer(lambda episode: ""))
        (question,) = next(stages)
        reply = make_trajectory([make_turn(text="set 0 to 1")] * turns, task=question.task, stop=stop)
        first = stages.send([reply])
        again = stages.send([came(p, "set 0 to 1") for p in first])
        assert len(first) == len(again) == SEARCH.width and {len(p.history) for p in again} == {1}
        with pytest.raises(StopIteration) as end:
            while True:
                again = stages.send([came(p, "set 0 to 1") for p in again])
        assert end.value.value[0].measures["sub_goals"] == 0


def test_it_is_made_by_settings_alone_and_names_differ() -> None:
    name = "longstride.papers.bfs_prover.method:SubGoals"
    one, other, behind = strategies(
        [
            [name],
            [name, "planner=runs/abler", "prompt=Plan it.", "replans=1", "search.type=beam", "guide.type=confidence"],
            [name, "planner.url=http://127.0.0.1:1/v1", "planner.name=m", "mark="],
        ]
    )
    assert isinstance(other, SubGoals) and other.planner == "runs/abler" and isinstance(other.search, Beam)
    assert one.name == "sub_goals_best_first_16_by_score_guided_by_path_likelihood_0.5"
    assert other.name.startswith("sub_goals_by_abler_asked_") and "_1_replans_beam_" in other.name
    assert behind.name.startswith("sub_goals_by_m_") and len({one.name, other.name, behind.name}) == 3
