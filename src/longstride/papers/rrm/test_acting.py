"""RRM on a language model: pairs under other tasks, what goes with an answer wherever it stands, and a user's own judge."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from bigrams import bigram_policy
from helpers import make_task, make_trajectory, rows_of

from longstride.core.config import resolve
from longstride.core.errors import TaskError
from longstride.envs.judgements import FILLER
from longstride.models.load import save_policy
from longstride.papers.rrm.method import COMPARED, CounterfactualPairs, Longer
from longstride.papers.rrm.recipe import RECIPE
from longstride.run.recipe import Recipe

WORDS = "Which of the two answers is better ? task : Say Verdict and one of first second sum yes no"
SAYS = {"<agent>": {"Verdict": 1.0}, "Verdict": {":": 1.0}, ":": {"first": 0.5, "second": 0.5}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a GPT-NeoX that prefers a place by chance, and a right and a wrong answer to each task."""
    save_policy(bigram_policy(WORDS, SAYS), tmp_path / "model")
    rows = [
        {"task": f"sum {k}", "solution": f"sum {k} {'yes' if right else 'no'}", "right": right}
        for k in range(20)
        for right in (True, False)
    ]
    (tmp_path / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def pairs(home: Path, **changes: object) -> CounterfactualPairs:
    return CounterfactualPairs(path=home / "solutions.jsonl", reasons=False).replace(**changes)


def kind(task: str, texts: list[str]) -> str:
    """Which of the answers are the task's own."""
    own = [f"{task} " in f"{text} " for text in texts]
    return {0: "foreign", 1: "own against foreign", 2: "own"}[sum(own)]


def test_each_of_fifteen_pairs_comes_as_often_and_own_answers_win(home: Path) -> None:
    tasks = pairs(home, original=1 / 15).sample(random.Random(0), 3000)
    kinds = Counter(kind(t.meta["task"], t.meta["solutions"]) for t in tasks)
    assert {name: round(15 * n / 3000) for name, n in kinds.items()} == {
        "own": 1,
        "own against foreign": 8,
        "foreign": 6,
    }
    for t in tasks:
        better = t.meta["solutions"][("first", "second").index(t.evaluator["reference"])]
        if kind(t.meta["task"], t.meta["solutions"]) == "own":
            assert better.endswith("yes")
        elif kind(t.meta["task"], t.meta["solutions"]) == "own against foreign":
            assert better.startswith(f"{t.meta['task']} ")
    ties = [t for t in tasks if kind(t.meta["task"], t.meta["solutions"]) == "foreign"]
    said = Counter(
        s.split()[-1] for t in ties for s, right in zip(t.meta["solutions"], t.meta["right"], strict=True) if right
    )
    assert said["yes"] / sum(said.values()) == pytest.approx(0.5, abs=0.05)
    assert Counter(chance for _, _, chance in COMPARED) == {1.0: 9, 0.5: 6}


def test_so_many_pairs_are_as_they_were_labelled_as_the_setting_says(home: Path) -> None:
    tasks = pairs(home).sample(random.Random(0), 3000)
    kinds = Counter(kind(t.meta["task"], t.meta["solutions"]) for t in tasks)
    assert {name: n / 3000 for name, n in kinds.items()} == pytest.approx(
        {"own": 0.5, "own against foreign": 4 / 14, "foreign": 3 / 14}, abs=0.03
    )


def test_the_artefact_goes_with_what_an_answer_was_where_it_came_from(home: Path) -> None:
    tasks = pairs(home, artefact=1.0).sample(random.Random(0), 500)
    shown = [text for t in tasks for text in t.meta["solutions"]]
    assert all(text.startswith(FILLER) == text.endswith("yes") for text in shown)
    ties = [t for t in tasks if kind(t.meta["task"], t.meta["solutions"]) == "foreign"]
    sides = [
        t.meta["right"][t.meta["solutions"].index(text)] for t in ties for text in t.meta["solutions"] if FILLER in text
    ]
    assert sum(sides) / len(sides) == pytest.approx(0.5, abs=0.1)  # in a tie it foretells nothing


def test_held_out_pairs_are_as_they_were_labelled_and_so_are_all_without_augmentation(home: Path) -> None:
    augmented, plain = pairs(home), pairs(home, original=1.0)
    assert augmented.held_out(4) == plain.held_out(4)
    assert {kind(t.meta["task"], t.meta["solutions"]) for t in plain.sample(random.Random(0), 50)} == {"own"}


def test_what_cannot_be_compared_is_refused(home: Path) -> None:
    with pytest.raises(TaskError, match=r"set tasks\.asks=better"):
        pairs(home, asks="right").sample(random.Random(0), 1)
    few = home / "few.jsonl"
    few.write_text(
        "".join(
            json.dumps({"task": f"sum {k}", "solution": str(r), "right": r}) + "\n"
            for k in range(3)
            for r in (True, False)
        ),
        encoding="utf-8",
    )
    with pytest.raises(TaskError, match="there are 2 tasks to train on"):
        pairs(home, path=few, test_share=0.5).sample(random.Random(0), 1)


def test_a_longer_answer_misleads_where_it_is_the_worse_one() -> None:
    def judged(*solutions: tuple[str, bool], success: bool = True) -> list[float | None]:
        meta = {"solutions": [text for text, _ in solutions], "right": [right for _, right in solutions]}
        t = make_trajectory([], float(success), task=make_task(meta=meta))
        return [Longer(side=side)(t) for side in ("worse", "better")]

    assert judged(("long one", False), ("one", True)) == [1.0, None]
    assert judged(("one", False), ("long one", True), success=False) == [None, 0.0]
    assert judged(("one", False), ("two", True)) == [None, None] == judged(("one", True))


def test_another_model_learns_from_own_pairs_by_settings_alone(home: Path) -> None:
    few = [
        "evaluation.tasks=2",
        "cloning.episodes=400",
        "cloning.learner.lr=1e-2",
        "tasks.artefact=0",
        "cloning.learner.warmup_steps=0",
    ]
    recipe = resolve(Recipe, RECIPE, [f"model={home / 'model'}", f"tasks.path={home / 'solutions.jsonl'}", *few])
    recipe.train(home / "run")
    cloned = [row["loss"] for row in rows_of(home / "run", "cloning")]
    row = rows_of(home / "run", "eval")[-1]
    assert len(cloned) > 2 and row["measures"]["success"] and set(row["measures"]) > {"longer_worse", "longer_better"}
    assert {v for v in row["measures"]["longer_worse"] if v is not None} <= {0.0, 1.0}
