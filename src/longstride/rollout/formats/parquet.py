"""The rows of `messages` as a Hugging Face data set: a table of Parquet and a card."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from longstride.core.errors import RunError, require
from longstride.rollout.formats.fields import MOST, Data

ROWS, SIZE = 64, MOST // 8
"""Rows of a group, and about how many bytes: a group is in memory as a whole."""


def schema() -> Any:
    """The types of the columns.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow = require("pyarrow", "parquet")
    text, number, many = arrow.string(), arrow.int64(), lambda kind: arrow.list_(arrow.list_(kind))
    function = arrow.struct({"name": text, "arguments": text})
    call = arrow.struct({"id": text, "type": text, "function": function})
    names = ("role", "content", "reasoning_content", "tool_call_id")
    message = arrow.struct(dict.fromkeys(names, text) | {"tool_calls": arrow.list_(call)})
    return arrow.schema(
        {
            "messages": arrow.list_(message),
            "task": text,
            "source": text,
            "ordinal": number,
            "iteration": number,
            "group": number,
            "reward": arrow.float64(),
            "success": arrow.bool_(),
            "stop": text,
            "answer": text,
            "tools": text,
            "prompt_ids": many(number),
            "completion_ids": many(number),
            "logprobs": many(arrow.float64()),
            "versions": many(number),
            "longstride": text,
        }
    )


def write_table(rows: Iterable[tuple[Data, int]], path: Path) -> None:
    """Writes rows, of which each says about how many bytes it has.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    columns, arrow, parquet = schema(), require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    some: list[Data] = []
    size = 0
    with parquet.ParquetWriter(path, columns) as file:
        for row, length in rows:
            if some and (len(some) == ROWS or size + length > SIZE):
                file.write_table(arrow.Table.from_pylist(some, columns))
                some, size = [], 0
            some.append(row)
            size += length
        file.write_table(arrow.Table.from_pylist(some, columns))


def read_table(path: Path, most: int) -> Iterator[Data]:
    """The rows of a table, without what is null in a message.

    Args:
        path: the table.
        most: bytes that a group of rows may have when it is unpacked.

    Raises:
        RunError: it cannot be read, or a group is larger.
        MissingExtra: pyarrow is not installed.
    """
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    try:
        with parquet.ParquetFile(path) as file:
            for k in range(file.metadata.num_row_groups):
                if (size := file.metadata.row_group(k).total_byte_size) > most:
                    raise RunError(f"{path}: a group of rows has {size} bytes, and at most {most} are read")
                for batch in file.iter_batches(1, row_groups=[k]):
                    (row,) = batch.to_pylist()
                    yield {name: _without_nulls(value) if name == "messages" else value for name, value in row.items()}
    except (arrow.ArrowException, OSError) as e:
        raise RunError(f"{path}: not a Parquet table that can be read ({' '.join(str(e).split())[:200]})") from e


def _without_nulls(messages: Any) -> Any:
    if not isinstance(messages, list):
        return messages
    return [{k: v for k, v in message.items() if v is not None} for message in messages if isinstance(message, dict)]


CARD = """---
pretty_name: {name}
task_categories:
- text-generation
tags:
- agent
- trajectories
- longstride
size_categories:
- {size}
configs:
- config_name: default
  data_files:
  - split: {split}
    path: data/*.parquet
---

# {name}

{episodes} {kind} of the recipe `{recipe}`, exported by Longstride {version}. The model is `{model}`.

| column | holds |
|---|---|
| `messages` | the conversation, as chat APIs have it: what was asked and seen, what the agent said, calls of tools |
| `task`, `source` | id of the task, and where it comes from |
| `ordinal`, `iteration`, `group` | number of the episode, of its iteration, of its group (same task and start) |
| `reward`, `success`, `stop`, `answer` | what it earned, whether the task was done, why it ended, what was answered |
| `tools` | the tools that were presented, as JSON text of what chat templates take; null where none was |
| `prompt_ids`, `completion_ids` | of each turn: the token ids that were read, and those that were sampled |
| `logprobs`, `versions` | of each sampled id: its log-probability (nats) when sampled, and the policy's version |
| `longstride` | all else, as JSON text: task, budget, seed, evidence, and of each turn action, error, address, times |

A prompt may show less of the past than `messages`, as the recipe's context policy decides; `prompt_ids` has what was
read.

```python
from datasets import load_dataset

episodes = load_dataset("{name}", split="{split}")
successes = episodes.filter(lambda row: row["success"])
```

<details><summary>Recipe</summary>

```toml
{toml}```

</details>
"""


def size_category(n: int) -> str:
    """The class of so many rows, in the hub's words."""
    bounds = (("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6))
    return next((name for name, bound in bounds if n < bound), "1M<n<10M")
