"""A task that runs in a container."""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]


class BoxedTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    NEEDS_CONTAINER = True


class Boxed(vf.Taskset[BoxedTask, vf.TasksetConfig]):
    def load(self):
        return [BoxedTask(vf.TaskData(prompt="p"), self.config.task)]


__all__ = ["Boxed"]
