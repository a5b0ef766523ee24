"""T2MIR: worlds of several kinds, histories that are told to be of one task, and a model and world of one's own."""

import random
from pathlib import Path
from typing import Any

from helpers import rows_of
from hidden_lamp import CHAT, TOKENIZER, small

from longstride.envs.hidden import Corridors, DarkRooms, SeveralWorlds
from longstride.models.experts import Experts, LlamaExperts
from longstride.models.load import Policy, load_policy, save_policy
from longstride.models.tiny import TinyConfig, build_model
from longstride.papers.t2mir.recipe import CLAIM, RECIPE

SHAPE = TinyConfig(width=32, layers=2, ffn=40, context=256, experts=Experts(tokens=4, tasks=4, ffn=12))


def test_an_own_world_by_settings_alone_and_what_is_saved_is_what_was_trained(tmp_path: Path) -> None:
    model: Any = build_model(SHAPE, len(TOKENIZER), 0)
    save_policy(Policy("own", model, TOKENIZER, CHAT, 256), tmp_path / "model")
    own = RECIPE.replace(**small(str(tmp_path / "model")), name="own").replace(cloning={"episodes": 120})
    own.train(tmp_path / "run")
    rows = rows_of(tmp_path / "run", "cloning")
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert all(row["balance"] > 0 and row["contrast"] > 0 for row in rows), "each step has two histories of a task"
    trained = load_policy(str(max((tmp_path / "run" / "checkpoints").iterdir()))).model
    assert isinstance(trained, LlamaExperts)
    (layer,) = trained.expert_layers()
    assert not layer.key_0.equal(model.expert_layers()[0].key_0), "the gate of the keys is part of a checkpoint"


def test_worlds_of_several_kinds_are_drawn_and_held_out() -> None:
    worlds = SeveralWorlds(worlds=(Corridors(), DarkRooms(size=3)))
    assert [t.source for t in worlds.held_out(3)] == ["hidden/corridor", "hidden/darkroom", "hidden/corridor"]
    assert {t.split for t in worlds.held_out(9)} == {"test"}
    drawn = [t.source for t in worlds.sample(random.Random(0), 200)]
    assert 70 < drawn.count("hidden/corridor") < 130


def test_the_active_experts_have_the_weights_of_the_dense_start() -> None:
    """But for the gates: 2 experts of each kind from D to D/2 against one network from D to D."""
    arms: Any = CLAIM.arms
    experts, dense = (load_policy(arms[name].start).model for name in ("experts", "dense"))
    assert isinstance(experts, LlamaExperts)
    (layer,) = experts.expert_layers()
    last: Any = dense.get_submodule("model.layers.3.mlp")
    active = sum(2 * sum(p.numel() for p in kind.experts[0].parameters()) for kind in (layer.tokens, layer.tasks))
    assert active == sum(p.numel() for p in last.parameters())
    shared = [{n: p.shape for n, p in m.named_parameters() if ".3.mlp." not in n} for m in (experts, dense)]
    assert shared[0] == shared[1]
    assert set(CLAIM.changes("dense")) == {"model"} and set(CLAIM.changes("untold")) == {
        "cloning.demonstrations.windows"
    }


def test_strengths_of_the_dose_are_in_one_unit_and_are_measured() -> None:
    arms: Any = CLAIM.arms
    assert {relation.rpartition(" in ")[2] for relation in CLAIM.dose} == {"share_of_most"}
    assert all("share_of_most" in {m.name for m in arm.evaluation.measures} for arm in arms.values())
