"""What a mistaken setting is answered with."""

import pytest

from longstride.core.component import build
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.papers import load
from longstride.stats import Ordering


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("loss=ppo", "did you mean loss.type=ppo?"),
        ("loss=pppo", "did you mean loss.type=ppo?"),
        ("tasks=miniwob", "did you mean tasks.type=miniwob?"),
        ("budget=24", "did you mean budget.turns=24?"),
        ("budget.turns=fixed", "did you mean budget.turns.type=fixed?"),
        ("learner=1e-4", "did you mean learner.lr=0.0001?"),
        ("lr=1e-4", "did you mean 'learner.lr'"),
        ("turns=24", "did you mean 'trial.turns' or 'budget.turns' or 'test_budget.turns'"),
        ("clip_low=0.1", "did you mean 'loss.type=ppo loss.clip_low'"),
        ("horizon=24", "did you mean 'budget.turns' or 'test_budget.turns'?"),
        ("evaluation.temperature=1.0", "did you mean 'evaluation.sampling.temperature'"),
        ("group=8", "did you mean 'group_size'?"),
        ("itertions=4", "did you mean 'iterations'?"),
    ],
)
def test_a_mistaken_setting_is_answered_with_what_was_probably_meant(override: str, meant: str) -> None:
    recipe = load("tti")
    with pytest.raises(ConfigError) as e:
        resolve(type(recipe), recipe, [override])
    assert meant in str(e.value) and len(str(e.value)) < 700


@pytest.mark.parametrize("override", ["reward=0.5", "learner=true", "objectives=3", "model=3", "xyzzy=1"])
def test_nothing_is_guessed_that_would_not_fit(override: str) -> None:
    recipe = load("tti")
    with pytest.raises(ConfigError) as e:
        resolve(type(recipe), recipe, [override])
    assert "did you mean" not in str(e.value)


def test_a_change_in_python_is_answered_alike() -> None:
    with pytest.raises(ConfigError, match=r"recipe.budget: expected a table, .*did you mean recipe.budget.turns=24\?"):
        load("tti").replace(budget=24)


def test_a_rule_about_several_fields_names_them_and_not_the_object_behind_them() -> None:
    with pytest.raises(ConfigError) as e:
        load("grpo").replace(sampling={"temperature": 0.5})
    assert len(str(e.value)) < 250 and "sampling.temperature" in str(e.value)


def test_a_number_that_does_not_fit_is_told_once() -> None:
    """And not that it is no table, which the setting takes as well."""
    with pytest.raises(ConfigError, match=r"^recipe.budget.turns: Input should be greater than .* \(got 0\)$"):
        load("tti").replace(budget={"turns": 0})


def test_a_list_is_not_called_short_where_what_stands_in_it_does_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"^relations.0: a relation is .* \(got 'a >> b'\)$"):
        build(Ordering, {"relations": ("a >> b",)})


def test_each_entry_of_a_list_that_is_no_table_is_told() -> None:
    with pytest.raises(ConfigError) as e:
        load("tti").replace(evaluation={"strategies": [1, 2]})
    first, second = str(e.value).splitlines()
    assert "strategies.0: expected a table" in first and "strategies.1: expected a table" in second
