"""Sums, one reply each, with two rewards."""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == self.data.answer)

    @vf.reward(weight=0.5)
    async def brief(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) < 3)


class Sums(vf.Taskset[SumTask, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        n = 0
        while True:
            a, b = divmod(n, 10)
            data = SumData(prompt=f"{a} + {b}", system_prompt="Reply with a number.", answer=str(a + b))
            yield SumTask(data, self.config.task)
            n += 1


__all__ = ["Sums"]
