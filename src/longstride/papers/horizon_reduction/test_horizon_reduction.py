"""Horizon reduction: a macro action is what the environment says, as long as it may be, and held-out tasks have none."""

from collections.abc import Sequence
from typing import Any

import pytest
from helpers import make_task

from longstride.core.budget import Budget
from longstride.core.errors import ConfigError
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Env, Observation, Step, TaskSource
from longstride.envs.dial import Dial
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.papers.horizon_reduction.method import MacroActions, MacroEnv
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.starts.demonstrators import run_now

FAR = Dial(distances=(10, 10))


def walked(length: int, held_out: bool = False) -> tuple[Trajectory, list[str]]:
    """A task that is done in macro actions by one who says what the shown page asks for; with a shortest solution."""
    source = MacroActions(tasks=FAR, length=length)
    task = source.held_out(1)[0] if held_out else source.sample(stream(0, "t"), 1)[0]
    solution = FAR.demonstrate(task)
    asked = {text.partition(" [")[0].partition("click ")[2]: text for text in solution[:-1]}

    def say(page: str) -> str:
        return next((text for name, text in asked.items() if f" {name}\n" in f"{page}\n"), solution[-1])

    (played,) = Pool(ScriptedPlayer(lambda e: say(e.page)), source.env, TaskReward()).run(
        [Plan(task, 0, 0, Budget(turns=20))]
    )
    return played, solution


@pytest.mark.parametrize(
    ("length", "turns"),
    # nine links and the answer: in macro actions of 4 links there are 4, 4, 1
    [(1, 10), (2, 6), (4, 4), (8, 3), (20, 2)],
)
def test_in_training_a_turn_is_as_many_actions_as_it_may_be(length: int, turns: int) -> None:
    played, solution = walked(length)
    assert played.success and played.length == turns
    said = [turn.text for turn in played.turns]
    assert said == [*solution[:-1:length], solution[-1]], "what is said is the first action of each"


def test_held_out_tasks_are_done_in_atomic_actions() -> None:
    played, solution = walked(4, held_out=True)
    assert played.success and [turn.text for turn in played.turns] == solution


def seen(env: Env, task: Any, texts: Sequence[str]) -> list[str]:
    async def steps() -> list[str]:
        first = await env.reset(task, 0)
        return [first.text, *[(await env.step(f"Action: {text}")).observation.text for text in texts]]

    return run_now(steps())


def test_a_wrong_link_an_idle_action_and_the_way_back_go_on_no_further() -> None:
    task = FAR.sample(stream(0, "t"), 1)[0]
    right = FAR.demonstrate(task)[0].rpartition("[")[2]
    wrong = next(n for n in range(2, 6) if f"{n}]" != right)
    texts = [f"click any [{wrong}]", "back", "click read help [1]", "wait", "nonsense"]
    assert seen(MacroActions(tasks=FAR, length=4).env(), task, texts) == seen(FAR.env(), task, texts)


class Counted:
    """Counts to `last`, each number a reward, and goes on by itself."""

    def __init__(self, last: int) -> None:
        self.last, self.n = last, 0

    async def reset(self, task: Any, seed: int) -> Observation:
        return Observation("0")

    async def step(self, text: str) -> Step:
        self.n += 1
        return Step(
            Observation(str(self.n)), float(self.n), action=text, terminated=self.n == self.last, info={text: 1}
        )

    def goes_on(self) -> str | None:
        return f"after {self.n}"

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("last", "ends", "reward"), [(9, "3", 6.0), (2, "2", 3.0)])
def test_rewards_add_up_and_an_end_is_an_end(last: int, ends: str, reward: float) -> None:
    async def stepped() -> Step:
        env = MacroEnv(Counted(last), 3)
        await env.reset(make_task(), 0)
        return await env.step("go")

    step = run_now(stepped())
    assert (step.observation.text, step.reward, step.action) == (ends, reward, "go")
    assert step.terminated == (last == 2) and set(step.info) == {"go", "after 1", "after 2"} - {f"after {last}"}


def test_a_world_that_does_not_say_how_an_action_goes_on_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not say how an action goes on; write `goes_on"):
        MacroActions(tasks=EmbeddedWeb()).env()


def test_everything_else_is_the_other_source_s() -> None:
    web: TaskSource = EmbeddedWeb()
    source = MacroActions(tasks=web, length=3)
    assert source.at_once == web.at_once and source.held_out(3) == web.held_out(3)
    assert source.sample(stream(1, "t"), 3) == web.sample(stream(1, "t"), 3)
    assert source.beside == {name: MacroActions(tasks=tasks, length=3) for name, tasks in web.beside.items()}
