"""GenRM on a language model: a user's own model and solutions by settings alone, and the ranking by votes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from bigrams import bigram_policy
from helpers import rows_of

from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.envs.judgements import Judgements
from longstride.models.load import load_policy, save_policy
from longstride.papers.genrm.method import Ranked, RankedBy, RightSolutions
from longstride.papers.genrm.recipe import RECIPE
from longstride.rewards import Pairwise, TaughtProbe
from longstride.run.evaluation import evaluate_policy
from longstride.run.recipe import Recipe

WORDS = "Is the answer correct ? task : Give your reasons , then say Verdict and one of yes no sum is right wrong"
SAYS = {"<agent>": {"sum": 1.0}, "sum": {"Verdict": 1.0}, "Verdict": {":": 1.0}, ":": {"yes": 0.5, "no": 0.5}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a GPT-NeoX that says yes or no by chance, and solutions of four answers to a task each."""
    save_policy(bigram_policy(WORDS, SAYS), tmp_path / "model")
    rows = [
        {"task": f"sum {k}", "solution": f"{'right' if right else 'wrong'} is {n}", "right": right}
        for k in range(20)
        for n, right in enumerate((False, True, False, True))
    ]
    (tmp_path / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def own(home: Path, *settings: str) -> Recipe:
    few = ["iterations=1", "episodes_per_iteration=32", "evaluation.tasks=8", "imitation.episodes=2"]
    return resolve(
        Recipe, RECIPE, [f"model={home / 'model'}", f"tasks.path={home / 'solutions.jsonl'}", *few, *settings]
    )


def test_a_model_of_another_architecture_learns_from_own_solutions_by_settings_alone(home: Path) -> None:
    own(home).train(home / "run")
    (row,) = rows_of(home / "run", "train")
    assert row["summary"]["actions"].keys() == {"answer"} and 0 < row["summary"]["success"] < 1
    assert row["trained_turns"] == RECIPE.learner.epochs * 32 * row["summary"]["success"] and "imitation_loss" in row
    evaluated = [r for r in rows_of(home / "run", "eval") if r["strategy"] == "ranked_by_4"]
    assert {len(r["measures"]["chosen"]) for r in evaluated} == {8}


def test_right_solutions_alone_are_generated_as_answers_to_their_tasks(home: Path) -> None:
    recipe, chat = own(home), load_policy(str(home / "model")).chat
    samples = RightSolutions().samples(recipe, chat, 9, random.Random(0))
    assert {chat.decode(s.sampled_ids).split()[0] for s in samples} == {"right"} and len(samples) == 9
    assert all("Verdict" not in chat.decode(s.prompt_ids) for s in samples)
    with pytest.raises(ConfigError, match="tasks.type=judgements, and this is puzzles"):
        RightSolutions().samples(recipe.replace(tasks={"type": "puzzles"}), chat, 1, random.Random(0))


@pytest.mark.parametrize(("votes", "tokens"), [(1, 4), (3, 12)])
def test_the_solution_with_the_highest_mean_is_chosen_and_votes_are_counted(
    home: Path, votes: int, tokens: int
) -> None:
    says = SAYS | {":": {"yes": 0.9, "no": 0.1}}
    found = evaluate_policy(bigram_policy(WORDS, says), own(home), strategy=Ranked(votes=votes)).measures
    assert [v is None for v in found["chosen"]] == [False, True, True, True] * 2
    assert found["chosen"][::4] == found["majority"][::4] == [0.0, 0.0]  # all are alike, so the first counts
    assert found["possible"][::4] == [1.0, 1.0]
    assert [a - b for a, b in zip(found["spent_tokens"], found["sampled_tokens"], strict=True)] == [tokens] * 8  # pyright: ignore[reportOperatorIssue]


def test_a_ranking_needs_questions_of_yes_and_no(home: Path) -> None:
    with pytest.raises(ConfigError, match="ranks solutions by yes and no"):
        evaluate_policy(
            bigram_policy(WORDS, SAYS), own(home, "tasks.asks=better", "evaluation.tasks=2"), strategy=Ranked()
        )


def test_a_head_that_learned_from_the_same_labels_ranks_beside_the_votes(home: Path) -> None:
    """Of every task the second and the fourth answer are right, and the last word tells which it is."""
    learns = f"scorer.model={home / 'model'}", f"scorer.solutions.path={home / 'solutions.jsonl'}"
    kind = '{type="longstride.papers.genrm.method:RankedBy", scorer={type="taught_probe", decay=0.01, model="m"}}'
    recipe = own(home, f"evaluation.strategies=[{kind}]", *(f"evaluation.strategies.0.{part}" for part in learns))
    (head,) = recipe.evaluation.strategies
    solutions = Judgements(path=home / "solutions.jsonl")
    assert head == RankedBy(scorer=TaughtProbe(model=str(home / "model"), decay=0.01, solutions=solutions))
    found = evaluate_policy(bigram_policy(WORDS, SAYS), recipe, strategy=head)
    assert found.measures["chosen"][::4] == [1.0, 1.0] and found.measures["majority"][::4] == [0.0, 0.0]
    read = [a - b for a, b in zip(found.measures["total_tokens"], found.measures["spent_tokens"], strict=True)]  # pyright: ignore[reportOperatorIssue]
    assert min(read) > 0
    with pytest.raises(ConfigError, match="is not about one"):
        pairs = own(home, "tasks.asks=better", "evaluation.tasks=2")
        evaluate_policy(bigram_policy(WORDS, SAYS), pairs, strategy=RankedBy(scorer=Pairwise()))


def test_the_recipe_judges_what_the_shipped_policy_wrote() -> None:
    data: dict[str, Any] = RECIPE.as_data()
    assert RECIPE.tasks == Judgements(policy="base-puzzles") and data["model"] == "base-judge"
