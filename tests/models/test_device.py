"""Devices: which one a run takes, in which type it keeps weights, and where what it loads goes."""

import json
from pathlib import Path

import pytest
import torch
from silent_world import RECIPE as PREFLIGHT
from transformers import Qwen3Config

import longstride as ls
from longstride.cli import doctor
from longstride.cli.main import main
from longstride.core.config import load_toml
from longstride.core.errors import EngineFailure
from longstride.core.implementation import IMPLEMENTATIONS
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.learner.networks import TrainedNetworks
from longstride.methods import Reinforce, demonstration
from longstride.models import device as devices
from longstride.models.adapters import LoRA
from longstride.models.load import load_policy
from longstride.run.listener import Silent
from longstride.run.loop import train
from longstride.run.recipe import Recipe

assert isinstance(PREFLIGHT, Recipe)
RECIPE: Recipe = PREFLIGHT


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which torch says that there is a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


@pytest.fixture
def large(tmp_path: Path) -> str:
    """The configuration of a model that is not tiny; there are no weights."""
    Qwen3Config(num_hidden_layers=2, hidden_size=512, vocab_size=151_936).save_pretrained(tmp_path / "large")
    return str(tmp_path / "large")


def timed(monkeypatch: pytest.MonkeyPatch, **seconds: float) -> list[str]:
    """Makes a round on each device take so long; returns the devices that were timed."""
    asked: list[str] = []
    monkeypatch.setattr(devices, "seconds_on", lambda d, model: asked.append(d) or seconds[d])
    return asked


def test_without_a_gpu_everything_is_on_the_cpu_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    settled = RECIPE.settled()
    assert (settled.device, settled.weights, settled.engine.as_data()["dtype"]) == ("cpu", "float32", "float32")
    with pytest.raises(ls.ConfigError, match="device is 'cuda', and torch finds none here .*set device=auto"):
        RECIPE.replace(device="cuda").settled()


@pytest.mark.usefixtures("cuda")
def test_a_large_model_goes_to_the_gpu_untimed_and_samples_in_bfloat16(
    monkeypatch: pytest.MonkeyPatch, large: str
) -> None:
    asked = timed(monkeypatch)
    settled = RECIPE.replace(model=large).settled()
    assert (settled.device, settled.weights, settled.engine.as_data()["dtype"]) == ("cuda", "float32", "bfloat16")
    assert not asked and settled.settled() == settled
    assert settled.replace(weights="auto", learner={"lora": LoRA()}).settled().weights == "bfloat16"


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(("cpu", "gpu", "taken"), [(1.0, 2.0, "cpu"), (2.0, 1.0, "cuda")])
def test_a_tiny_model_goes_where_it_was_timed_to_be_faster(
    monkeypatch: pytest.MonkeyPatch, cpu: float, gpu: float, taken: str
) -> None:
    asked = timed(monkeypatch, cpu=cpu, cuda=gpu)
    assert RECIPE.settled().device == taken and asked == ["cpu", "cuda"]
    assert RECIPE.replace(device="cuda").settled().device == "cuda" and len(asked) == 2
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert RECIPE.settled().device == "cuda" and len(asked) == 2


@pytest.mark.usefixtures("cuda")
def test_on_a_cluster_this_process_leaves_the_gpus_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    from longstride.cluster.config import ClusterConfig

    settled = RECIPE.settled(ClusterConfig())
    assert settled.device == "cpu" and settled.engine == RECIPE.engine


def test_mps_is_taken_where_it_is_the_only_one(monkeypatch: pytest.MonkeyPatch, large: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    settled = RECIPE.replace(model=large).settled()
    assert (settled.device, settled.weights, settled.engine.as_data()["dtype"]) == ("mps", "float32", "float32")


def test_what_was_trained_on_another_machine_is_evaluated_on_this_one(
    monkeypatch: pytest.MonkeyPatch, large: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert devices.device_here("cuda", large) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert devices.device_here("cuda", large) == devices.device_here("auto", large) == "cuda"
    assert devices.device_here("cpu", large) == "cpu"


def test_the_work_that_is_timed_is_done() -> None:
    assert devices.seconds_on("cpu", "base") > 0


def test_a_new_model_is_trained_where_there_is_a_gpu_unless_it_is_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available", lambda: "cuda")
    tiny, large = torch.nn.Linear(10, 10), torch.nn.Linear(10_000, 10_000, device="meta")
    assert [devices.place_of(model, "auto") for model in (tiny, large)] == ["cpu", "cuda"]
    assert [devices.place_of(tiny, where) for where in ("cpu", "cuda")] == ["cpu", "cuda"]
    with pytest.raises(ls.ConfigError, match="device is 'mps', and torch finds none here"):
        devices.place_of(tiny, "mps")


def test_a_model_is_loaded_in_the_type_and_on_the_device_that_are_asked_for() -> None:
    half = load_policy("base", dtype="bfloat16")
    assert {p.dtype for p in half.model.parameters()} == {torch.bfloat16} and half.device == "cpu"
    placed: dict[str, object] = {}

    def keep(*names: object, **given: object) -> None:
        placed.update(given)
        raise torch.OutOfMemoryError("the card is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longstride.models.load.AutoModelForCausalLM.from_pretrained", keep)
        with pytest.raises(torch.OutOfMemoryError):
            load_policy("base", device="cuda")
    assert placed["device_map"] == torch.device("cuda")


def test_adapters_of_weights_in_bfloat16_are_trained_in_float32() -> None:
    policy = load_policy("base", dtype="bfloat16")
    learner = Learner(policy.model, LearnerConfig(lora=LoRA(rank=2), warmup_steps=0), Reinforce())
    assert {p.dtype for p in learner.parameters.values()} == {torch.float32}
    before = {name: p.detach().clone() for name, p in learner.parameters.items()}
    learner.step([demonstration([3, 4, 5], [6, 7])])
    assert any(not torch.equal(p, before[name]) for name, p in learner.parameters.items())
    assert {p.dtype for p in learner.full_model().parameters()} == {torch.bfloat16}


def test_moments_of_a_checkpoint_go_where_the_weights_are() -> None:
    net = torch.nn.Linear(2, 1)
    trained = TrainedNetworks({"v": net}, lr=1e-2)
    trained.step(net(torch.ones(1, 2)).sum())
    empty = TrainedNetworks({"v": torch.nn.Linear(2, 1, device="meta")}, lr=1e-2)
    empty.load_state(trained.state())
    assert {v.device.type for kept in empty._optimiser.state.values() for v in kept.values()} == {"meta"}


def test_run_toml_and_the_first_lines_say_what_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train(RECIPE.replace(iterations=1, learner={"epochs": 0}), tmp_path / "run", Silent())
    kept = load_toml(Recipe, tmp_path / "run" / "run.toml")
    assert (kept.device, kept.weights) == ("cpu", "float32")
    assert kept.engine == RECIPE.engine.settled("cpu", str(RECIPE.model))
    monkeypatch.setitem(IMPLEMENTATIONS, "recipe", lambda *_: (_ for _ in ()).throw(ls.RunError("enough")))
    assert main(["train", "tti", "--out", str(tmp_path / "other")]) == 2
    assert "device: CPU, 1 threads; weights in float32" in capsys.readouterr().out


def test_a_run_goes_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = RECIPE.replace(iterations=1, learner={"epochs": 0})
    train(recipe, tmp_path / "run", Silent())
    text = (tmp_path / "run" / "run.toml").read_text()
    settled = recipe.settled().replace(engine=recipe.engine, learner=recipe.learner)
    assert recipe.replace(device="cuda").identity() == settled.identity()
    assert 'device = "cpu"' in text


def test_doctor_names_the_device_and_fails_where_a_pass_on_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_generation", lambda: "said 'x'")
    monkeypatch.setattr(doctor, "_web_episode", lambda: "solved")
    assert main(["doctor", "--json"]) == 0
    checks = {c["name"]: c for c in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["self-test: device"]["found"].startswith("runs use CPU, 1 threads: forward and backward pass")

    def broken(model: object) -> float:
        raise RuntimeError("CUDA error: no kernel image is available\nand more")

    monkeypatch.setattr(devices, "try_on", broken)
    with pytest.raises(EngineFailure, match="runs use CPU.* fails .CUDA error: no kernel image is available.; mend it"):
        doctor._passes()
