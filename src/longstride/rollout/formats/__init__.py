"""Trajectories as files of other people's tools.

| format | is | written as |
|---|---|---|
| `atif` | Harbor's agent trajectory interchange format, one document an episode | `000000.json` |
| `messages` | OpenAI's chat messages with tool calls, a row an episode | `messages.jsonl` |
| `sft` | token ids with masks, a row for what was read in one go, as TRL trains on it | `sft.jsonl` |
| `parquet` | the rows of `messages` as a Hugging Face data set, with a card | `data/*.parquet`, `README.md` |

What always holds: the fields of a format say what they can, and what they cannot say stands beside them under the name
`longstride`, so what is read back equals what was written; files of others have no such fields, and then a task is made
of what was said first. Half a character (a lone surrogate), which is no text of Unicode, is read as `?`.
"""

from longstride.rollout.formats.reading import Found, read_episodes
from longstride.rollout.formats.writing import FORMATS, Format, Origin, write_episodes

__all__ = ["FORMATS", "Format", "Found", "Origin", "read_episodes", "write_episodes"]
