"""How the local engine computes: calls, beginnings that are read once, modules with a faster forward."""

from unittest import mock

import pytest
import torch
from engine_models import (
    NEVER,
    alone,
    batch,
    difference,
    like,
    llama,
    other,
    prompts,
)  # fmt: skip

import longstride.engines.attention as attention
import longstride.engines.local as local
from longstride.engines.attention import Piece
from longstride.engines.base import Request
from longstride.engines.cache import Slot, shared_beginnings
from longstride.engines.fusion import fuse
from longstride.engines.local import LocalEngine


class TestCalls:
    """Which pieces go through one call, where a call costs as much as 60 scores."""

    @staticmethod
    def parts(*pieces: tuple[int, int, int]) -> list[list[int]]:
        return [[p.slot for p in part] for part in attention._joined([Piece(*p) for p in pieces], 60)]

    def test_single_queries_go_together_while_that_costs_little_reading(self) -> None:
        assert attention.READ == 4
        # a call each: 5 * 10 + 5 * 20 + 60; both in one: 2 * 5 * 20, and one slot idle: 3 * 5 * 20
        assert self.parts((0, 9, 1), (1, 19, 1)) == [[0, 1]]
        assert self.parts((0, 9, 1), (2, 19, 1)) == [[0], [2]]
        assert self.parts((0, 9, 1), (1, 22, 1)) == [[0], [1]]  # 5 * 33 + 60 against 2 * 5 * 23
        assert self.parts((0, 9, 1), (1, 21, 1)) == [[0, 1]]  # 5 * 32 + 60 against 2 * 5 * 22

    def test_slots_must_rise_and_scores_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.parts((1, 0, 5), (0, 0, 5)) == [[1], [0]]
        assert self.parts((0, 0, 5), (1, 0, 5)) == [[0, 1]]
        monkeypatch.setattr(attention, "SCORES", 2 * 5 * 5 - 1)
        assert self.parts((0, 0, 5), (1, 0, 5)) == [[0], [1]]


class TestTrunks:
    @pytest.mark.parametrize("name", ["llama", "qwen3", "sliding window"])
    def test_beginnings_read_once_give_what_each_row_gives_alone(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = llama() if name == "llama" else other(name)
        heads = prompts(3, seed=7, longest=1)
        groups = [(head * 20 + [i] * (20 + 3 * i), 4 - i) for i, head in enumerate(heads)]
        requests = [Request(p, 6 + k, seed=k, session=None) for p, n in groups for k in range(n)]
        requests += batch(prompts(3))
        want = [alone(model, r) for r in requests]
        monkeypatch.setitem(local.SHARE, "cpu", 1)
        with mock.patch.object(
            attention._Trunks, "attend", autospec=True, side_effect=attention._Trunks.attend
        ) as used:
            done = LocalEngine(model, NEVER, 128).generate(requests)
        assert used.called
        assert all(like(*pair) for pair in zip(done, want, strict=True)) and difference(model, requests, done) < 1e-5

    def test_a_group_inside_a_larger_one_is_a_trunk_of_its_own(self) -> None:
        engine, head = LocalEngine(llama(), NEVER, 128), [1, 2] * 16
        slots = []
        for tail in ([5] * 20, [6] * 20, [5] * 20, [6] * 20):
            engine.generate([Request([*head, *tail], 1, seed=0, session=len(slots))])
            slots.append(engine._cache._sessions[len(slots)])
        assert shared_beginnings(slots, 1) == [([slots[0], slots[2]], 52), ([slots[1], slots[3]], 52)]
        engine.generate([Request([*head, 9], 1, seed=0, session=0)])
        assert (slots[0].trunk, slots[0].common) == (slots[2].trunk, 32)
        engine.generate([Request([9] * 20, 1, seed=0, session=2)])
        assert slots[2].trunk is not slots[0].trunk

    def test_rows_go_together_as_far_as_that_spares_reading(self) -> None:
        trunk = object()
        slots = [Slot(i, at=100, trunk=trunk, common=n) for i, n in enumerate([90, 10, 90])] + [Slot(3, at=100)]
        # two rows read 90 positions once instead of twice, and gather 11 each; a third would leave 10 in common
        assert shared_beginnings(slots, 90 - 2 * 22) == [([slots[0], slots[2]], 90)]
        assert shared_beginnings(slots, 90 - 2 * 22 + 1) == []

    def test_slots_for_all_who_wait_are_made_at_once(self) -> None:
        engine = LocalEngine(llama(), NEVER, 128)
        requests = [Request([7] * 40, 3, seed=i, session=i % 5) for i in range(8)]
        with mock.patch.object(engine._cache.store, "resize", wraps=engine._cache.store.resize) as resize:
            engine.generate(requests)
        assert resize.call_count == 1 and engine._cache.store.slots == 5


class TestFusion:
    @pytest.mark.parametrize(("name", "faster"), [("qwen3", 4 * 3 + 1 + 3 + 3), ("gpt_neox", 0)])
    def test_known_modules_get_a_faster_forward_with_the_same_answer(self, name: str, faster: int) -> None:
        model, ids = other(name), torch.arange(12).unsqueeze(0)
        engine = LocalEngine(model, NEVER, 128)
        assert sum("forward" in vars(m) for m in engine._model.modules()) == faster
        assert not any("forward" in vars(m) for m in model.modules())
        done = engine.generate([Request(ids[0].tolist(), 1, seed=0)])
        assert difference(model, [Request(ids[0].tolist(), 1, seed=0)], done) < 1e-5

    def test_what_looks_alike_and_answers_otherwise_keeps_its_own(self) -> None:
        class Shifted(torch.nn.Module):
            variance_epsilon = 1e-6

            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.zeros(8))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.nn.functional.rms_norm(x, (8,), 1 + self.weight, self.variance_epsilon)

        model = llama()
        for layer in model.model.layers:
            layer.mlp.act_fn = torch.nn.GELU()
        experts = torch.nn.Module()  # factors that are no layers
        for name in ("gate_proj", "up_proj", "down_proj"):
            experts.register_parameter(name, torch.nn.Parameter(torch.ones(2, 8, 8)))
        both = torch.nn.ModuleList([Shifted(), experts, *(layer.mlp for layer in model.model.layers)])
        fuse(both)
        assert not any("forward" in vars(m) for m in both.modules())

    def test_lower_precision_is_left_alone(self) -> None:
        engine = LocalEngine(llama(), NEVER, 128, dtype="bfloat16")
        assert not any("forward" in vars(m) for m in engine._model.modules())
