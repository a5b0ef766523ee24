"""The targets of `fuzz/` on their corpora, and on bytes near them; what fuzzing has found, each with its mend."""

import random
from pathlib import Path

import pytest
from fuzz.targets import TARGETS, forge
from helpers import begin_run

from longstride.core.errors import ModelError, RunError
from longstride.core.sealed import DamagedError, loads, seal
from longstride.envs.sites import application
from longstride.envs.sites.browser import TextBrowser
from longstride.models.size import check_size
from longstride.report.rows import read_record
from longstride.run.checkpoint import open_checkpoint

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"


def near(data: bytes, rng: random.Random) -> bytes:
    """Bytes with a piece changed, taken out, or repeated."""
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    piece = [bytes(rng.randrange(256) for _ in range(3)), b"", data[a:b] * 9, b"9" * 5000, b"[" * 2000][
        rng.randrange(5)
    ]
    return data[:a] + piece + data[rng.choice([a, b]) :]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_keeps_its_promise_on_its_corpus_and_near_it(name: str) -> None:
    rng = random.Random(0)
    seeds = sorted((CORPUS / name).iterdir())
    assert seeds
    for path in seeds:
        data = path.read_bytes()
        for given in [data, *(near(data, rng) for _ in range(5))]:
            TARGETS[name](given)


def test_the_corpus_reaches_what_is_behind_a_seal() -> None:
    data = (CORPUS / "run_files" / "forged_metrics").read_bytes()[1:]
    (line,) = forge("metrics.jsonl", data).splitlines()
    assert loads(line, "1")["kind"] == "train"


@pytest.mark.parametrize("text", ["{]}", '{"a": 1L}', "[1}", '{"a": ' + "9" * 5000 + "}"])
def test_what_is_no_object_behind_a_right_seal_is_damaged(text: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="it is not JSON"):
        loads(seal(text, "1").encode(), "1")
    folder = tmp_path / "000000"
    folder.mkdir()
    (folder / "trainer.json").write_text(seal(text) + "\n")
    with pytest.raises(RunError, match=r"trainer\.json is damaged: it is not JSON"):
        open_checkpoint(folder)


def test_a_run_whose_recipe_is_no_toml_is_refused_by_its_report(tmp_path: Path) -> None:
    for text in (f"a = {'1' * 5000}\n", f"a = {'[' * 5000}\n", "a\n"):
        begin_run(tmp_path, text)
        with pytest.raises(RunError, match=r"run\.toml cannot be read: not TOML"):
            read_record(tmp_path)


@pytest.mark.parametrize(
    "header",
    ["1", '{"a": 1}', '{"a": {"shape": 3}}', '{"a": {"shape": ["x"]}}', '{"a": {"shape": [-1]}}',
     '{"a": {"shape": [true]}}', f'{{"a": {{"shape": [{"9" * 3000}]}}}}', f'{{"a": {{"shape": {[9] * 99}}}}}'],
)  # fmt: skip
def test_a_header_of_weights_that_is_none_is_one_message(header: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 2}')
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode())
    with pytest.raises(ModelError, match="'m' cannot be loaded: ") as e:
        check_size("m", tmp_path)
    assert len(str(e.value)) < 300


def test_a_setting_of_thousands_of_digits_is_shown_in_short(tmp_path: Path) -> None:
    header = '{"a": {"shape": [4]}}'
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode())
    for key in ("num_layers", "vocab_size"):
        (tmp_path / "config.json").write_text(f'{{"{key}": {"9" * 4000}}}')
        with pytest.raises(ModelError, match=f"config.json has {key} = 9999") as e:
            check_size("m", tmp_path)
        assert len(str(e.value)) < 300


@pytest.mark.parametrize("address", ["/shop/{}/", "/shop/1/i/{}", "/{}/1/", "/shop/1/c/lamps?page={}"])
async def test_a_long_number_in_an_address_fails_no_episode(address: str) -> None:
    """A policy that says such an address would choose which of its episodes count."""
    browser = TextBrowser(application(), "http://sites.test")
    await browser.open("/shop/1/")
    await browser.goto(address.format("9" * 1500))
    assert browser.status in (200, 404)
    for digits in (5000, 19):
        assert await browser.goto(address.format("9" * digits)) or browser.status in (200, 404)
