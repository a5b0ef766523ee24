"""A sum, with a tool that adds."""

import verifiers as vf  # pyright: ignore[reportMissingImports]
from datasets import Dataset  # pyright: ignore[reportMissingImports]


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def right(completion, answer):
    return float(answer in (completion[-1]["content"] or ""))


def load_environment():
    data = Dataset.from_list([{"question": "2 + 3", "answer": "5"}])
    return vf.ToolEnv(dataset=data, tools=[add], rubric=vf.Rubric(funcs=[right]), max_turns=5)
