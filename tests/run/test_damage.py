"""Run folders that were damaged: what is found, by file and line, and what is mended.

LONGSTRIDE_FLIPS=1000 makes it the long form, a thousand flipped bits over every kind of file (some five minutes); by
default it is one hundred."""

import json
import os
import random
import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import forge, rows_of, trajectories_of, weights_hash
from one_page import Watcher, make_recipe, save_model

import longstride as ls
from longstride.cli.common import run_recipe
from longstride.core.errors import LongstrideError, LongstrideWarning, RunError
from longstride.core.lock import held
from longstride.core.sealed import place_of, seal
from longstride.learner.critics import TurnValue
from longstride.methods import PPO, OnPolicy
from longstride.methods.advantages import GAE
from longstride.models.load import Policy, load_policy, save_policy
from longstride.report.compare import compare
from longstride.report.curves import curve_of
from longstride.report.episodes import read_episodes
from longstride.report.export import export
from longstride.report.html import write_report
from longstride.report.rows import read_record
from longstride.report.sweeps import summary
from longstride.rollout.store import TrajectoryStore
from longstride.run.checkpoint import open_checkpoint, save_checkpoint
from longstride.run.experiment import load_run_experiment
from longstride.run.folder import RunFolder, read_rows
from longstride.run.imitation import StoredSuccesses
from longstride.run.listener import Silent
from longstride.run.loop import train
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe
from longstride.run.stored import stored_iterations

FLIPS = int(os.environ.get("LONGSTRIDE_FLIPS", 100))
NEWEST, BEFORE = Path("checkpoints/000003"), Path("checkpoints/000002")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Path]:
    """A finished run of three iterations."""
    home = tmp_path_factory.mktemp("damage")
    changes: dict[str, Any] = {"replay": OnPolicy(), "credit": GAE(values="critic"), "loss": PPO()}
    critic = TurnValue(width=8, warmup=1)
    recipe = make_recipe(save_model(home / "tiny"), iterations=3, episodes_per_iteration=6, critic=critic, **changes)
    train(recipe, home / "whole")
    return recipe, home / "whole"


@pytest.fixture
def run(whole: tuple[Recipe, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole[1], tmp_path / "run"))


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


class TestCheckpoint:
    @pytest.mark.parametrize("name", ["model.safetensors", "trainer.safetensors", "trainer.json", "tokenizer.json"])
    def test_a_damaged_one_is_named_and_the_run_goes_on_from_the_one_before(self, whole, run, name):
        flip(run / NEWEST / name, random.Random(0))
        with pytest.raises(RunError, match=rf"000003/{name} is damaged.*--resume .* goes on from an earlier one"):
            load_run(run)
        with pytest.warns(LongstrideWarning, match=rf"000003/{name} is damaged.*going on from iteration 2"):
            train(whole[0], run, resume=True)
        assert rows_of(run) == rows_of(whole[1]) and weights_hash(run) == weights_hash(whole[1])

    def test_a_missing_file_is_damage(self, whole, run):
        (run / NEWEST / "config.json").unlink()
        with pytest.warns(LongstrideWarning, match=r"000003/config\.json cannot be read: No such file"):
            train(whole[0], run, resume=True)
        assert weights_hash(run) == weights_hash(whole[1])

    def test_where_both_newest_are_damaged_the_run_is_refused_and_nothing_is_removed(self, whole, run):
        for folder in (NEWEST, BEFORE):
            flip(run / folder / "model.safetensors", random.Random(0))
        before = (run / "run.toml").read_bytes()
        with pytest.raises(RunError, match=r"cannot be resumed: .*000003/model\.safetensors is damaged"):
            train(whole[0].replace(iterations=9), run, resume=True)
        assert (run / "run.toml").read_bytes() == before
        assert {p.name for p in (run / "checkpoints").iterdir()} == {"000000", "000002", "000003"}

    def test_a_run_that_lost_all_of_them_is_refused(self, whole, run):
        shutil.rmtree(run / "checkpoints")
        with pytest.raises(RunError, match="all its checkpoints are lost"):
            train(whole[0], run, resume=True)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("iteration", -5), ("iteration", 9), ("rows", -1), ("rows", 1.0), ("rows", "7"), ("rows", ...),
         ("episodes", True), ("episodes", None), ("seconds", float("nan")), ("seconds", -1.0), ("seconds", 10**400)],
    )  # fmt: skip
    def test_an_impossible_number_is_named(self, whole, run, name, value):
        for folder in (NEWEST, BEFORE):
            forge(run / folder, **{name: value})
        with pytest.raises(RunError, match=rf"trainer\.json.*(as|expected) {name}"):
            train(whole[0].replace(iterations=4), run, resume=True)

    @pytest.mark.parametrize("name", ["exp_avg", "critic/exp_avg_sq", "critic/weight"])
    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_state_that_is_not_finite_is_never_trained_on(self, whole, run, name, value):
        def spoil(tensors: dict[str, torch.Tensor]) -> None:
            next(t for k, t in tensors.items() if k.startswith(f"{name}/")).view(-1)[0] = value

        forge(run / NEWEST, spoil)
        with pytest.raises(RunError, match=f"{name}/.* is not finite"):
            train(whole[0].replace(iterations=4), run, resume=True)

    @pytest.mark.parametrize("name", ["step", "exp_avg", "critic/step"])
    def test_moments_that_lack_a_part_are_refused(self, whole, run, name):
        forge(run / NEWEST, lambda tensors: tensors.pop(next(k for k in tensors if k.startswith(f"{name}/"))))
        with pytest.raises(RunError, match="optimiser state is damaged"):
            train(whole[0].replace(iterations=4), run, resume=True)

    def test_moments_below_zero_are_refused(self, whole, run):
        def spoil(tensors: dict[str, torch.Tensor]) -> None:
            next(t for k, t in tensors.items() if k.startswith("exp_avg_sq/")).view(-1)[0] = -1.0

        forge(run / NEWEST, spoil)
        with pytest.raises(RunError, match="exp_avg_sq/.* is below zero"):
            train(whole[0].replace(iterations=4), run, resume=True)

    def test_a_model_with_files_in_a_folder_is_flushed_and_checked_whole(self, tmp_path, monkeypatch):
        policy, flushed = load_policy(str(save_model(tmp_path / "tiny"))), []
        template = policy.tokenizer.chat_template
        policy.tokenizer.chat_template = {"default": template, "tool_use": template}
        for module in ("longstride.models.load", "longstride.run.checkpoint"):
            monkeypatch.setattr(f"{module}.flush", lambda path: flushed.append(path.name))
        save_checkpoint(tmp_path, 0, lambda folder: save_policy(policy, folder), {}, {"iteration": 0})
        folder, inside = tmp_path / "checkpoints" / "000000", "additional_chat_templates/tool_use.jinja"
        assert flushed.count("tool_use.jinja") == flushed.count("additional_chat_templates") == 2
        assert inside in open_checkpoint(folder).numbers["files"]
        flip(folder / inside, random.Random(0))
        with pytest.raises(RunError, match=f"000000/{inside} is damaged"):
            open_checkpoint(folder)

    @pytest.mark.parametrize("name", ["../../secret", "/secret"])
    def test_one_that_names_a_file_elsewhere_is_refused_and_the_file_is_not_read(self, tmp_path, name):
        save_checkpoint(tmp_path, 0, Path.mkdir, {}, {"iteration": 0})
        forge(tmp_path / "checkpoints" / "000000", files={name: {"bytes": 0, "crc": "00000000"}})
        with pytest.raises(RunError, match=f"{name} is damaged: it is outside of the checkpoint"):
            open_checkpoint(tmp_path / "checkpoints" / "000000")

    def test_what_a_killed_save_left_is_removed(self, whole, run):
        for left in ("partial", ".partial.saving-x1", "dropped"):
            shutil.copytree(run / NEWEST, run / "checkpoints" / left)
        (run / "checkpoints" / "my notes").mkdir()
        train(whole[0], run, resume=True)
        assert {p.name for p in (run / "checkpoints").iterdir()} == {"000000", "000002", "000003", "my notes"}

    def test_what_a_killed_save_of_a_policy_left_is_removed_by_the_next_one(self, run, tmp_path):
        _, policy = load_run(run)
        (tmp_path / ".mine.saving-x1" / "new").mkdir(parents=True)
        (tmp_path / ".mine.other").mkdir()
        save_policy(policy, tmp_path / "mine")
        assert {p.name for p in tmp_path.iterdir()} == {"run", "mine", ".mine.other"}


class TestLines:
    """Of a file of lines: of the metrics rows here, of trajectories in rollout/test_store.py."""

    ROW = 5

    def damage(self, path: Path, how: str) -> None:
        lines, k = lines_of(path), self.ROW
        match how:
            case "lost":
                del lines[k]
            case "doubled":
                lines.insert(k, lines[k - 1])
            case "half":
                lines[k] = lines[k][: len(lines[k]) // 2]
            case "moved":
                lines[k], lines[k + 1] = lines[k + 1], lines[k]
        path.write_bytes(b"".join(lines))

    @pytest.mark.parametrize("how", ["lost", "half", "moved"])
    def test_the_first_line_that_is_not_what_was_written_is_named(self, whole, run, how):
        self.damage(run / "metrics.jsonl", how)
        with pytest.raises(RunError, match=rf"metrics\.jsonl, line {self.ROW + 1}: it is not what was written there"):
            train(whole[0], run, resume=True)
        with pytest.warns(LongstrideWarning, match=rf"metrics\.jsonl: lines? {self.ROW + 1}.* left out"):
            read_record(run)

    def test_rows_of_two_processes_are_told_apart_and_those_of_the_other_are_kept_aside(self, whole, run):
        """From row 5 on a second process wrote its own between: the same ones at another time, or none any more."""
        path = run / "metrics.jsonl"
        lines, theirs = lines_of(path), []
        for k, row in enumerate(read_rows(path)[4:7], 4):
            theirs.append(seal(json.dumps(row | {"seconds": 0.5}), place_of(k)).encode() + b"\n")
        mixed = b"".join(
            [*lines[:4], theirs[0], lines[4], theirs[1], lines[5], lines[6], theirs[2][:50] + b"\n", *lines[7:]]
        )
        path.write_bytes(mixed)
        with pytest.warns(LongstrideWarning, match=r"several processes at a time.* in metrics\.mixed\.jsonl"):
            train(whole[0], run, resume=True)
        assert lines_of(path) == lines and (run / "metrics.mixed.jsonl").read_bytes() == mixed
        assert weights_hash(run) == weights_hash(whole[1])

    def test_a_row_that_stands_twice_is_one(self, whole, run):
        self.damage(run / "metrics.jsonl", "doubled")
        with pytest.warns(LongstrideWarning, match="several processes at a time"):
            train(whole[0], run, resume=True)
        assert rows_of(run) == rows_of(whole[1])

    def test_rows_lost_at_the_end_are_missed(self, whole, run):
        path = run / "metrics.jsonl"
        path.write_bytes(b"".join(lines_of(path)[:-1]))
        with pytest.warns(LongstrideWarning, match="has lost its last 1 rows"):
            read_record(run)
        with pytest.warns(LongstrideWarning, match="after 10 metrics rows, 9 are there; going on from iteration 2"):
            train(whole[0], run, resume=True)
        assert rows_of(run) == rows_of(whole[1])

    def test_where_an_episode_of_the_last_iteration_is_damaged_the_run_goes_on_from_the_one_before(self, whole, run):
        self.ROW = 14
        self.damage(run / "trajectories.jsonl", "half")
        with pytest.warns(LongstrideWarning, match=r"trajectories\.jsonl, line 15: .*going on from iteration 2"):
            train(whole[0], run, resume=True)
        assert weights_hash(run) == weights_hash(whole[1]) and len(trajectories_of(run)) == 18

    def test_where_an_older_episode_is_damaged_the_run_is_refused(self, whole, run):
        self.damage(run / "trajectories.jsonl", "half")
        with pytest.raises(RunError, match=r"trajectories\.jsonl, line 6: .*start it anew"):
            train(whole[0], run, resume=True)

    @pytest.mark.parametrize("how", ["lost", "doubled", "half", "moved"])
    def test_episodes_that_are_shown_are_counted(self, run, how):
        self.damage(run / "episodes" / "after.jsonl", how)
        assert any("episodes/after.jsonl: line" in note for note in read_episodes(run)[1])


def imitate(run: Path, recipe: Recipe, policy: Policy) -> None:
    StoredSuccesses(run=run).samples(recipe, policy.chat, 1, random.Random(0))


READERS: dict[str, Callable[[Path, Path], object]] = {
    "resume": lambda run, other: load_run_experiment(run).train(run, resume=True),
    "eval": lambda run, other: load_run(run),
    "view": lambda run, other: write_report(run),
    "compare": lambda run, other: compare([other, run]),
    "fit": lambda run, other: curve_of(run, "iteration", "success"),
    "sweep": lambda run, other: summary([run], ["learner.lr"], "success"),
    "export": lambda run, other: export(run, run / "exported"),
    "playback": lambda run, other: run_recipe(run),
    "program": lambda run, other: ls.load_run(run).metrics,
    "imitation": lambda run, other: imitate(run, *load_run(other)),
    "stored": lambda run, other: next(stored_iterations(Recipe.model_construct(stored_run=run), 0, 1)),
}


@pytest.mark.parametrize("use", READERS)
@pytest.mark.parametrize("name", ["run.toml", "format.json"])
def test_no_reader_believes_a_damaged_description_of_a_run(whole, run, name, use):
    data = (run / name).read_bytes()
    for damaged in (data.replace(b"0.", b"4.", 1), data.replace(b"seed", b"seee", 1), data[:-1], b""):
        if damaged != data:
            (run / name).write_bytes(damaged)
            with pytest.raises(RunError, match=name.replace(".", r"\.")):
                READERS[use](run, whole[1])


def test_while_a_process_writes_in_it_no_other_one_resumes_it(whole: tuple[Recipe, Path], run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with held(run), pytest.raises(RunError, match="being written by process"):
        whole[0].replace(iterations=4).train(run, resume=True)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def used(recipe: Recipe, run: Path) -> str:
    """What is said when a run folder is read and resumed: the message of an error, or warnings and notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LongstrideWarning)
        try:
            load_run_experiment(run)
            read_record(run)
            notes = read_episodes(run)[1]
            list(TrajectoryStore(run / "trajectories.jsonl"))
            for folder in (run / "checkpoints").iterdir():
                open_checkpoint(folder)
            RunFolder(recipe.settled(), run, Silent(), resume=True)
        except LongstrideError as e:
            assert "\n" not in str(e)
            return str(e)
    return " ".join([*(str(w.message) for w in caught), *notes])


def test_no_flipped_bit_goes_on_in_silence(whole: tuple[Recipe, Path], tmp_path: Path) -> None:
    """But in the index, which is made again from the trajectories: there nothing comes out otherwise."""
    recipe, original = whole
    files = sorted(p.relative_to(original) for p in original.rglob("*") if p.is_file())
    assert used(recipe, Path(shutil.copytree(original, tmp_path / "unharmed"))) == ""
    records = TrajectoryStore(original / "trajectories.jsonl").records
    found, rng = Counter[str](), random.Random(0)
    for n in range(FLIPS):
        path, run = files[n % len(files)], tmp_path / "run"
        shutil.copytree(original, run)
        flip(run / path, rng)
        if path.suffix == ".index":
            assert TrajectoryStore(run / "trajectories.jsonl").records == records
        said = used(recipe, run)
        if path.suffix != ".index":
            assert path.name in said or str(run) in said, f"{path} in silence: {said!r}"
        found[path.name] += 1
        shutil.rmtree(run)
    assert found.total() == FLIPS and len(found) >= 12


def test_a_run_of_another_format_is_refused_by_its_number(whole: tuple[Recipe, Path], run: Path) -> None:
    (run / "format.json").write_text('{"format": 2, "longstride": "0.2.0"}\n')
    for use in (load_run_experiment, load_run, lambda run: train(whole[0], run, Watcher(), resume=True)):
        with pytest.raises(RunError, match="has run format 2, and this version reads format 3; train it anew"):
            use(run)
