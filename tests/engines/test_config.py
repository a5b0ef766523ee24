"""Engines in a recipe: as TOML, and through a run whose tokens come from a server."""

from pathlib import Path
from typing import Any

import pytest
from helpers import content, trajectories_of
from one_page import make_recipe, save_model
from vllm_server import VLLMServer, install

from longstride.core.component import Component, build
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.engines.config import HTTP, EngineConfig, Local
from longstride.engines.weights import NCCL, Folder
from longstride.envs.base import TaskSource
from longstride.models.load import load_policy
from longstride.run.loop import train
from longstride.run.recipe import Recipe


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def server(model_folder, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    install(monkeypatch)
    server = VLLMServer(load_policy(str(model_folder)))
    yield server
    server.stop()


def test_an_engine_is_named_on_the_command_line_and_comes_back_from_data(model_folder):
    settings = [
        "engine.type=http",
        "engine.url=http://127.0.0.1:8000/v1/",
        "engine.model=m",
        "engine.weights.type=folder",
    ]
    settings.append("engine.weights.path=/shared")
    recipe = resolve(Recipe, make_recipe(model_folder), settings)
    assert recipe.engine == HTTP(url="http://127.0.0.1:8000/v1", model="m", weights=Folder(path="/shared"))
    assert build(Recipe, recipe.as_data()) == recipe
    assert make_recipe(model_folder).engine == Local()


@pytest.mark.slow
def test_a_run_over_http_whose_server_rests_is_the_run_in_this_process(model_folder, server, tmp_path):
    recipe = make_recipe(model_folder, iterations=2)
    remote = recipe.replace(engine=HTTP(url=f"{server.root}/v1", model="m", weights=NCCL(sleep=True)))
    for name, each in (("local", recipe), ("remote", remote)):
        train(each, tmp_path / name)
    local, over_http = ([content(t) for t in trajectories_of(tmp_path / name)] for name in ("local", "remote"))
    assert len(local) == 20 and {t["versions"] for e in over_http for t in e["turns"]} == {0, 1}
    for one, other in zip(local, over_http, strict=True):
        for ours, theirs in zip(one["turns"], other["turns"], strict=True):
            assert ours.pop("logprobs") == pytest.approx(theirs.pop("logprobs"), abs=1e-4)
        assert one == other
    assert server.calls.count("/sleep?level=2&mode=wait") == 2


def test_a_server_that_takes_no_weights_is_refused_before_a_rollout(model_folder, server, tmp_path):
    recipe = make_recipe(model_folder, engine=HTTP(url=f"{server.root}/v1", model="m"))
    with pytest.raises(ConfigError, match="engine.weights"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run" / "trajectories.jsonl").exists()


HERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("family", "data", "field"),
    [
        (EngineConfig, {"type": "http", "url": f"{HERE}/v1", "model": "m"}, "timeout"),
        (EngineConfig, {"type": "vllm"}, "timeout"),
        (TaskSource, {"type": "mcp", "command": ["true"], "tasks": {"path": "asked.jsonl"}}, "deadline"),
        (TaskSource, {"type": "openenv", "address": HERE}, "deadline"),
        (TaskSource, {"type": "browser_gym", "ids": ["x"]}, "delay"),
    ],
)
def test_what_is_waited_for_has_an_upper_end(
    family: type[Component], data: dict[str, Any], field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asked.jsonl").write_text('{"prompt": "p", "answer": "1"}\n')
    with pytest.raises(ConfigError, match=rf"{field}: .*less than or equal to 1000000000 \(got 1e\+300\)"):
        build(family, data | {field: 1e300})
