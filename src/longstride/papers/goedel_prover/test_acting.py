"""Goedel-Prover-V2 on language models: what a verifier says, which episodes are played, and another model that reads it."""

import asyncio
from pathlib import Path

import pytest
from bigrams import bigram_policy
from elsewhere import train_elsewhere
from helpers import make_trajectory, rows_of, trajectories_of

from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.envs.puzzles import Corrected, Countdown, ModularChain
from longstride.envs.puzzles.countdown import Numbers
from longstride.envs.puzzles.modular import Chain
from longstride.models.load import save_policy
from longstride.papers.goedel_prover.method import PassRate
from longstride.papers.goedel_prover.recipe import RECIPE
from longstride.run.recipe import Recipe

CHAIN = Chain(first=3, operations=(("+", 4), ("*", 2), ("+", 5)), modulus=7)  # 0, 0, 5
RIGHT = "Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ; 0 + 5 ≡ 5 Action: answer 5"
WRONG = "Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 1 ; 1 + 5 ≡ 6 Action: answer 6"


@pytest.mark.parametrize(
    ("said", "complaint", "left"),
    [
        (WRONG, "0 * 2 ≡ 1 no", (0, 2)),
        ("Thought: 3 + 4 ≡ 1 Action: answer 1", "3 + 4 ≡ 1 no", None),
        ("Thought: 3 + 4 ≡ 0 Action: answer 0", "answer 0 no", (0, 2)),  # it gave up
        (RIGHT.replace("answer 5", "answer 4"), "answer 4 no", None),
        ("answer 4", "answer 4 no", None),
    ],
)
def test_a_complaint_quotes_the_first_wrong_step_and_what_is_left_begins_there(
    said: str, complaint: str, left: tuple[int, int] | None
) -> None:
    assert CHAIN.complaint(said) == complaint
    rest = CHAIN.rest(said)
    assert (rest and (rest.first, len(rest.operations))) == left
    assert rest is None or rest.values()[-1] == CHAIN.values()[-1]


def test_other_puzzles_say_their_verdict() -> None:
    puzzle = Numbers(numbers=(3, 4), target=7)
    assert puzzle.complaint("Action: answer 3 * 4") == puzzle.check("3 * 4")
    assert (
        puzzle.complaint("Action: guess 7").startswith("unknown action") and puzzle.rest("Action: answer 3 * 4") is None
    )


def task(**changes: object) -> Task:
    return ModularChain()._task(CHAIN, "easy").model_copy(update=changes)


def seen(source: Corrected, *texts: str, of: Task | None = None) -> tuple[list[str], bool, str]:
    """The pages after each text, whether the episode is over, and the verdict."""

    async def play() -> tuple[list[str], bool, str]:
        env = source.env()
        await env.reset(of or task(), seed=1)
        steps = [await env.step(text) for text in texts]
        return [str(s.observation.content) for s in steps], steps[-1].terminated, (await env.final_state())["verdict"]

    return asyncio.run(play())


def test_a_failed_attempt_is_told_what_is_wrong_and_a_right_one_ends_the_episode() -> None:
    assert seen(Corrected(), WRONG, RIGHT) == (["0 * 2 ≡ 1 no\ncheck again", ""], True, "solved")
    assert seen(Corrected(), WRONG, WRONG, WRONG)[1:] == (True, "the value is 5 , not 6")
    assert seen(Corrected(), WRONG, of=task(horizon=1))[1] and not seen(Corrected(), WRONG)[1]
    assert seen(Corrected(told="nothing"), WRONG)[0] == ["check again"]
    (said,) = seen(Corrected(told="any"), WRONG)[0]
    assert said.split("\n")[0].removesuffix(" no") in WRONG and "≡" in said


def test_what_is_left_of_a_task_is_one_to_train_on() -> None:
    goals = [
        goal
        for t in ModularChain(lengths=(5, 5, 5)).held_out(30)
        if (goal := Corrected().subgoal(t, f"Thought: {Chain.of(t).steps()[0]} Action: answer 0"))
    ]
    assert goals and all(g.split == "train" and len(Chain.of(g).operations) == 4 for g in goals)
    assert Countdown().subgoal(Countdown().held_out(1)[0], "Action: answer 1") is None


def test_groups_teach_that_are_solved_now_and_then() -> None:
    def group(*successes: bool) -> bool:
        return PassRate().teaches([make_trajectory([], float(s)).record() for s in successes])

    assert [group(False, False), group(True, False, False, False), group(*[True] * 3, False), group(True, True)] == [
        False, True, True, False,
    ]  # fmt: skip


WORDS = "start + - * ; mod Thought: Action: answer check again no ≡ " + " ".join(map(str, range(100)))
FOLLOWS = {
    "<agent>": {"Action:": 1.0}, "Action:": {"answer": 1.0}, "answer": {str(k): 1 / 7 for k in range(7)},
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of a GPT-NeoX that answers by chance."""
    save_policy(bigram_policy(WORDS, FOLLOWS), tmp_path / "model")
    few = ["iterations=1", "episodes_per_iteration=64", "group_size=4", "evaluation.tasks=12", "evaluation.every=1"]
    shorter = ["tasks.puzzles.lengths=[2, 2, 2]", "budget.turn_tokens=8", "test_budget.turn_tokens=8"]
    resolve(Recipe, RECIPE, [f"model={tmp_path / 'model'}", *few, *shorter]).train(tmp_path / "run")
    return tmp_path / "run"


def test_another_model_is_trained_on_whole_answers_and_on_corrections(run: Path) -> None:
    (row,) = rows_of(run, "train")
    roles = row["summary"]["by_role"]
    assert roles["whole"]["episodes"] == 32 and roles["correction"]["episodes"] == 32 and "subgoal" not in roles
    whole, corrections = ([t for t in trajectories_of(run) if t.role == role] for role in ("whole", "correction"))
    assert {t.env_seed for t in corrections} <= {t.seed for t in whole}
    last = rows_of(run, "eval")[-1]["measures"]
    assert max(last["length"]) > 1 and set(last["within_1_attempts"]) <= {0.0, 1.0}
    assert sum(last["success"]) >= sum(last["within_1_attempts"])


def test_subgoals_need_tasks_that_can_be_taken_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="these have no `subgoal`"):
        train_elsewhere("goedel_prover", tmp_path)
    run = train_elsewhere("goedel_prover", tmp_path / "whole", "sampler.subgoals=0", "budget.turns=2")
    assert {"whole"} <= rows_of(run, "train")[0]["summary"]["by_role"].keys()
