"""Capitals, one reply each, with a rubric and evaluation data."""

import verifiers as vf  # pyright: ignore[reportMissingImports]
from datasets import Dataset  # pyright: ignore[reportMissingImports]


def right(completion, answer):
    return float(answer in completion[-1]["content"])


def load_environment():
    rows = {"Chile": "Santiago", "Kenya": "Nairobi"}
    data = Dataset.from_list([{"question": f"the capital of {land}", "answer": city} for land, city in rows.items()])
    held = Dataset.from_list([{"question": "the capital of Peru", "answer": "Lima"}])
    return vf.SingleTurnEnv(
        dataset=data, eval_dataset=held, system_prompt="Be brief.", rubric=vf.Rubric(funcs=[right], weights=[1.0])
    )
