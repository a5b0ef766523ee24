"""J1: the exact accuracy with waits, cloning of what was right, and the update."""

import numpy as np
import pytest

from longstride.exact.judging import softmax
from longstride.papers.j1.exact import AGAIN, END, HABITS, NEW, RECIPE, Flaws, Reinforced, ThoughtTuned, by_looks


def logits(rows: list[list[float]]) -> dict[str, np.ndarray]:
    with np.errstate(divide="ignore"):
        return {"logits": np.log(np.clip(rows, 1e-12, 1))}


def test_who_looks_at_new_lines_gains_by_every_wait_and_who_looks_again_by_none() -> None:
    problem = Flaws(lines=8, sight=1.0, most=2, waits=2)
    keen = problem.measures(logits([[1, 0, 0]] * 3))
    assert [keen[f"waits_{k}"] for k in range(3)] == pytest.approx([0.5 + 0.5 * n / 8 for n in (2, 4, 6)])
    assert keen["gain"] == pytest.approx(0.25) and keen["gain_a_look"] == pytest.approx(0.25 / 4)
    stuck = problem.measures(logits([[1, 0, 0], [0, 1, 0], [0, 1, 0]]))
    assert [stuck[f"waits_{k}"] for k in range(3)] == pytest.approx([0.5 + 0.5 / 8] * 3)


def test_a_wait_takes_out_one_end_and_the_thought_may_end_again() -> None:
    """Ends after the first look; each wait adds a look at a new line with 1/2, and then ends."""
    problem = Flaws(lines=10, sight=1.0, most=3, waits=3)
    found = problem.measures(logits([[1, 0, 0], [0.001, 0.001, 0.998], [0.001, 0.001, 0.998]]))
    assert [found[f"waits_{k}"] for k in range(4)] == pytest.approx([0.55, 0.575, 0.6, 0.625], abs=1e-3)


def test_no_more_lines_are_looked_at_than_there_are() -> None:
    assert Flaws(lines=2, sight=1.0).measures(logits([[1, 0, 0]] * 3))["waits_4"] == pytest.approx(1.0)


def test_the_exact_accuracy_is_that_of_sampled_thoughts() -> None:
    problem = Flaws()
    actions, right = problem.think(HABITS, 40_000, np.random.default_rng(0))
    exact = problem.measures({"logits": np.log(HABITS.clip(1e-12))})["waits_0"]
    assert right.mean() == pytest.approx(exact, abs=0.01)
    ended = np.cumsum(actions == END, 1)
    assert (actions[:, 1:][ended[:, :-1] > 0] == -1).all() and (ended.max(1) <= 1).all()


def test_fine_tuning_copies_the_teacher_with_what_was_right_a_little_likelier() -> None:
    problem = Flaws(lines=3, sight=1.0)
    p = softmax(ThoughtTuned(cold=30_000).start(problem, np.random.default_rng(0))["logits"])
    assert p == pytest.approx(HABITS, abs=0.12) and p[1, NEW] > HABITS[1, NEW] + 0.02
    assert p.sum(1) == pytest.approx([1, 1, 1])


def test_actions_are_summed_by_looks_so_far() -> None:
    actions = np.array([[NEW, AGAIN, NEW, END], [NEW, END, -1, -1]])
    assert by_looks(actions, np.ones((2, 4))).tolist() == [[2, 0, 0], [0, 1, 1], [1, 0, 1]]


def test_the_update_is_the_gradient_of_the_weighted_log_likelihood() -> None:
    method, problem = Reinforced(batch=64, rate=1.0, beta=0.2), Flaws()
    state = method.start(problem, np.random.default_rng(0)) | {"logits": np.random.default_rng(1).normal(size=(3, 3))}
    after = method.step(problem, state, np.random.default_rng(2))["logits"] - state["logits"]
    p, q = softmax(state["logits"]), softmax(state["reference"])
    actions, right = problem.think(p, 64, np.random.default_rng(2))
    weights = {}
    for n, thought in enumerate(actions):
        for i, a in enumerate(thought[thought >= 0]):
            rest = [(min(j, 2), b) for j, b in enumerate(thought) if j >= i and b >= 0]
            weights[n, i, a] = right[n] - 0.2 * sum(np.log(p[at] / q[at]) for at in rest)
    mean, deviation = np.mean(list(weights.values())), np.std(list(weights.values())) + 1e-6

    def objective(x: np.ndarray) -> float:
        logp = np.log(softmax(x))
        return sum((w - mean) / deviation * logp[min(i, 2), a] for (_, i, a), w in weights.items()) / 64

    for at in np.ndindex(3, 3):
        bump = np.zeros((3, 3))
        bump[at] = 1e-6
        slope = (objective(state["logits"] + bump) - objective(state["logits"] - bump)) / 2e-6
        assert after[at] == pytest.approx(slope, abs=1e-7)


def test_reinforcement_makes_looks_new() -> None:
    recipe = RECIPE.replace(problem={"lines": 6}, method={"cold": 500})
    state = recipe.method.start(recipe.problem, np.random.default_rng(0))
    before = recipe.problem.measures(state)["gain"]
    for i in range(60):
        state = recipe.method.step(recipe.problem, state, np.random.default_rng(i))
    assert recipe.problem.measures(state)["gain"] > before + 0.1
