"""A taskset whose rows cannot be made."""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]


class Broken(vf.Taskset[vf.Task, vf.TasksetConfig]):
    def load(self):
        yield 1 / 0


__all__ = ["Broken"]
