"""A number that is found by being told higher or lower: the environment leads the conversation."""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]


class BisectConfig(vf.TaskConfig):
    most: int = 9


class BisectData(vf.TaskData):
    wanted: int


class BisectTask(vf.Task[BisectData, vf.State, BisectConfig]):
    @vf.stop
    async def too_many(self, trace: vf.Trace) -> bool:
        return trace.num_turns >= self.config.most

    @vf.reward
    async def found(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == str(self.data.wanted))


class BisectTasksetConfig(vf.TasksetConfig):
    task: BisectConfig = BisectConfig()


class Bisect(vf.Taskset[BisectTask, BisectTasksetConfig]):
    def load(self):
        return [BisectTask(BisectData(prompt=f"number {n} of ten", wanted=n), self.config.task) for n in range(8)]


class BisectEnvConfig(vf.EnvConfig):
    guesser: vf.AgentConfig = vf.AgentConfig()


class BisectEnv(vf.Env[BisectEnvConfig]):
    async def run(self, task, agents):
        async with agents.guesser.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated and segment.last_reply != str(task.data.wanted):
                guess = int(segment.last_reply) if segment.last_reply.isdigit() else -1
                segment = await interaction.turn("higher" if guess < task.data.wanted else "lower")


__all__ = ["Bisect", "BisectEnv"]
