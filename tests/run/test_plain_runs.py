"""Runs of models that are sampled plainly and trained in rows: what holds of other runs holds of them."""

from pathlib import Path
from typing import Any

import pytest
from families import make
from helpers import content, rows_of, tiny_policy, trajectories_of, weights_hash
from one_page import WORDS, Watcher, make_recipe

from longstride.core.config import load_toml
from longstride.core.errors import LongstrideWarning, RunError
from longstride.core.sealed import seal_toml
from longstride.engines.config import Local
from longstride.models.load import make_policy, save_policy
from longstride.models.lora import LoRA
from longstride.run.folder import RunFolder
from longstride.run.listener import Silent
from longstride.run.loop import train
from longstride.run.recipe import Recipe

pytestmark = pytest.mark.filterwarnings("ignore:.*sampled plainly:longstride.core.errors.LongstrideWarning")


def save(name: str, folder: Path) -> Path:
    """A tiny model of a family, which knows the words of the page."""
    tokenizer = tiny_policy(WORDS).tokenizer
    save_policy(make_policy(name, make(name, vocab_size=len(tokenizer)), tokenizer), folder)
    return folder


@pytest.mark.parametrize(
    "name, changes", [("Qwen3.5", {}), ("Mamba", {}), ("gpt-oss", {"learner": {"lora": LoRA(rank=2)}})]
)
def test_a_run_that_was_stopped_gives_exactly_the_numbers_of_one_that_was_not(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    recipe = make_recipe(save(name, tmp_path / "model"), iterations=2).replace(**changes)
    with pytest.warns(LongstrideWarning, match="is sampled plainly"):
        train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "cut", Watcher(stop_after=2))
    train(recipe, tmp_path / "cut", resume=True)
    cut, whole = ([content(t) for t in trajectories_of(tmp_path / run)] for run in ("cut", "whole"))
    assert cut == whole and {turn["versions"] for t in whole for turn in t["turns"]} == {0, 1}
    assert weights_hash(tmp_path / "cut") == weights_hash(tmp_path / "whole")
    first, _ = rows_of(tmp_path / "whole", "train")  # the second trains on what version 0 sampled, too
    assert first["steps"] and first["sampling_gap"] < 1e-5
    kept = load_toml(Recipe, tmp_path / "whole" / "run.toml")
    assert isinstance(kept.engine, Local) and kept.engine.plain is True


def test_a_run_from_before_the_setting_goes_on_and_no_run_changes_its_engine(tmp_path: Path) -> None:
    recipe = make_recipe(save("Qwen3", tmp_path / "model"), iterations=1)
    train(recipe, tmp_path / "run")
    path = tmp_path / "run" / "run.toml"
    text = path.read_text("utf-8")
    assert "plain = false\n" in text
    forced = recipe.replace(engine={"plain": True})
    with pytest.raises(RunError, match="'engine.plain' is not set there and True here"):
        RunFolder(forced.settled(), tmp_path / "run", Silent(), resume=True)
    lines = text.splitlines(keepends=True)[:-1]  # without the seal
    path.write_text(seal_toml("".join(line for line in lines if "plain = " not in line)), "utf-8")
    train(recipe.replace(iterations=2), tmp_path / "run", resume=True)
    assert [row["iteration"] for row in rows_of(tmp_path / "run", "train")] == [1, 2]
