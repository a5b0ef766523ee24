"""Three doublings in three turns."""

import verifiers as vf  # pyright: ignore[reportMissingImports]
from datasets import Dataset  # pyright: ignore[reportMissingImports]


class Doubles(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **kwargs):
        return [vf.UserMessage(content=f"double {messages[-1]['content']}")]


def doubled(completion):
    said = [m["content"] for m in completion if m["role"] == "assistant"]
    return sum(reply == str(2 ** (k + 1)) for k, reply in enumerate(said)) / 3


def load_environment():
    data = Dataset.from_list([{"question": f"double 1 ({k})", "answer": ""} for k in range(4)])
    return Doubles(dataset=data, rubric=vf.Rubric(funcs=[doubled]), max_turns=3)
