"""DARS's sampler on enumerable answers: what it plays, and that a hard task is not lost."""

from collections import Counter

import numpy as np

from longstride.exact.answers import Answers
from longstride.exact.experiment import ExactRecipe
from longstride.exact.planned import Planned
from longstride.papers.dars.exact import CLAIM, RECIPE
from longstride.papers.dars.method import DifficultyAdaptive


def arm(name: str) -> tuple[Planned, Answers]:
    """The method of an arm, and its problem."""
    recipe = CLAIM.arms[name]
    assert isinstance(recipe, ExactRecipe)
    assert isinstance(recipe.method, Planned) and isinstance(recipe.problem, Answers)
    return recipe.method, recipe.problem


def test_groups_grow_as_the_sampler_says_and_never_above_those_of_the_arm_that_is_compared() -> None:
    method, problem = RECIPE.method, RECIPE.problem
    assert isinstance(method, Planned) and isinstance(problem, Answers)
    assert isinstance(sampler := method.sampler, DifficultyAdaptive)
    state = method.start(problem, np.random.default_rng(0))
    played = method.collect(problem, state["logits"], state, np.random.default_rng(0))
    assert [t.ordinal for t in played] == list(range(len(played)))
    for q in range(8):
        group = [t for t in played if t.task.id == f"task-{q}"]
        assert len({t.group for t in group}) == 1
        assert len(group) == 8 + sampler.extra(8, sum(t.success for t in group[:8])) <= 32
    largest, _ = arm("uniform_32")
    sizes = Counter(t.task.id for t in largest.collect(problem, state["logits"], state, np.random.default_rng(0)))
    assert set(sizes.values()) == {32}


def test_a_sampled_arm_plays_the_same_answers_as_often_as_the_policy_gives_them() -> None:
    problem = Answers(tasks=((0.2,),), vocabulary=4, length=2)
    method = arm("uniform_8")[0].replace(group=4000)
    state = method.start(problem, np.random.default_rng(0))
    played = method.collect(problem, state["logits"], state, np.random.default_rng(1))
    given = Counter(tuple(t.turns[0].sampled_ids) for t in played)
    p_K = problem.tree.answers(state["logits"])[0]
    for k, p in enumerate(p_K):
        assert abs(given[tuple(problem.tree.tokens[k])] / 4000 - p) < 4 * np.sqrt(p * (1 - p) / 4000) + 1e-9


def test_ten_updates_lose_less_of_the_hard_tasks_than_uniform_groups_do() -> None:
    after = {}
    for name in ("dars", "uniform_32"):
        method, problem = arm(name)
        state = method.start(problem, np.random.default_rng(0))
        for i in range(10):
            state = method.step(problem, state, np.random.default_rng(i))
        after[name] = problem.measures(state)["pass@32"]
    assert after["dars"] > after["uniform_32"] + 0.05
