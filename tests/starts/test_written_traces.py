"""Traces from a file become a start: each in its turn, in an order of its own each time."""

import json
from itertools import islice
from math import log
from pathlib import Path

import pytest

from longstride.core.errors import ConfigError
from longstride.starts.demonstrators import turns_of
from longstride.starts.warmstart import WarmStart, make_base
from longstride.starts.written_traces import WrittenTraces


def written(folder: Path, rows: list[dict[str, object]]) -> WrittenTraces:
    (folder / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return WrittenTraces(path=folder / "traces.jsonl")


def test_all_are_used_before_one_is_used_again_and_the_first_ones_if_so_asked(tmp_path: Path) -> None:
    traces = written(tmp_path, [{"prompt": f"ask {n}", "completion": f"say {n}"} for n in range(5)])
    found = list(islice(traces.demonstrations(0), 15))
    rounds = [[shown.texts[0] for shown in found[k : k + 5]] for k in (0, 5, 10)]
    assert all(sorted(told) == [f"say {n}" for n in range(5)] for told in rounds) and rounds[0] != rounds[1]
    assert [shown.texts for shown in islice(traces.demonstrations(0, first=7), 4)] == [s.texts for s in found[7:11]]
    few = islice(traces.replace(most=2).demonstrations(0), 8)
    assert {shown.texts[0] for shown in few} == {"say 0", "say 1"}


def test_a_file_in_which_nobody_speaks_is_refused_in_one_line(tmp_path: Path) -> None:
    traces = written(tmp_path, [{"messages": [{"role": "user", "content": "hello"}]}])
    with pytest.raises(ConfigError, match=r"traces\.jsonl: in none of its 1 episodes does anybody say anything"):
        next(traces.demonstrations(0))


def test_a_conversation_becomes_a_start_whose_vocabulary_is_its_words(tmp_path: Path) -> None:
    messages = [("user", "which way"), ("assistant", "north"), ("user", "and now"), ("assistant", "east")]
    row: dict[str, object] = {"messages": [{"role": role, "content": text} for role, text in messages]}
    config = WarmStart().replace(
        demonstrators=written(tmp_path, [row]),
        recitals=0,
        tokens=1500,
        step_tokens=256,
        page_weight=0.0,
        model={"width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "ffn": 16, "context": 64},
        learner={"lr": 3e-2, "warmup_steps": 0, "dtype": "float32"},
    )
    losses: list[float] = []
    policy = make_base(tmp_path / "start", config, lambda now: losses.append(now["loss"]))
    assert {"north", "east", "which", "now"} <= {*policy.tokenizer.get_vocab()}
    shown = next(config.demonstrators.demonstrations(0))
    assert [s.sampled_ids[-1] for s in turns_of(shown, policy.chat, config.context, 0.0)] == [*policy.chat.close] * 2
    assert losses[-1] < log(len(policy.tokenizer)) - 2, "it is surer than one who says anything"
