"""The shipped start on trails: it wanders, and copies names that it never saw."""

import random
import subprocess
import sys
from pathlib import Path

from longstride.core.config import dump_toml
from longstride.envs.dial import Habits
from longstride.models.load import SHIPPED, load_policy
from longstride.papers.tti.dial import RECIPE
from longstride.run.evaluation import evaluate_policy


def test_the_start_wastes_a_third_of_its_turns_and_copies_new_names_as_well_as_known_ones() -> None:
    assert sum(p.stat().st_size for p in SHIPPED["base-dial"].iterdir()) < 0.5e6
    policy, recipe = load_policy("base-dial"), RECIPE.replace(engine={"processes": 1})
    tasks = recipe.tasks.held_out(100), recipe.tasks.sample(random.Random(1), 100)
    for played in (evaluate_policy(policy, recipe, drawn) for drawn in tasks):
        habits = {name: value or 0.0 for name, value in Habits.of(played.trajectories).table().items()}
        assert habits["idle"] > 0.3 and habits["begins"] < habits["goes_on"]
        assert 0.05 < habits["quits"] < 0.2 and habits["misreads"] < 0.07
        assert 0.4 < played.summary["by_difficulty"]["easy"]["success"] < 0.85


def test_a_run_of_the_setup_is_read_where_nothing_but_recipes_was_imported(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(dump_toml(RECIPE), encoding="utf-8")
    code = f"import longstride as ls; assert ls.load_recipe({str(path)!r}).name == 'tti/dial'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
