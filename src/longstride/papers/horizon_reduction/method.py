"""Tasks whose training episodes are played in macro actions (`MacroActions`)."""

from dataclasses import replace

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.envs.base import Continuing, Env, Observation, OtherTasks, Step
from longstride.envs.interface import ask


class MacroActions(OtherTasks):
    """Other tasks. In training an action goes on as far as the environment says that it does, for `length` actions at
    most, in one turn; held-out tasks are played in atomic actions.

    What a turn reads and says is what it was, so a policy of macro actions is one of atomic actions too. How an action goes
    on is the environment's to say (`envs.base.Continuing`).
    """

    length: Count = 4
    """Most atomic actions of a macro action; 1 plays atomic ones."""

    def env(self) -> "MacroEnv":
        return MacroEnv(self.tasks.env(), self.length)


class MacroEnv:
    """An `Env` in which a turn of a training episode may be several actions of another one.

    The observation, error and end are those of the last of them, rewards add up, and the action is the one that was said.
    """

    def __init__(self, env: Env, length: int) -> None:
        """Raises: ConfigError where the environment does not say how an action goes on."""
        if not isinstance(env, Continuing):
            raise ConfigError(
                f"tasks macro_actions: {type(env).__name__} does not say how an action goes on; write `goes_on(self)`, which "
                "returns what would be said next or None, or take tasks.tasks.type=dial with browser=none"
            )
        self._env, self._most, self._goes_on = env, length, env.goes_on
        self.final_state, self.close = env.final_state, env.close

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the other environment. Raises: EnvFailure as that does."""
        self._length = 1 if task.split == "test" else self._most
        return await ask(Observation, self._env, "reset", task, seed)

    async def step(self, text: str) -> Step:
        """Does what the policy's text says, and what goes on from it. Raises: EnvFailure as the other environment."""
        step = await ask(Step, self._env, "step", text)
        for _ in range(self._length - 1):
            if step.terminated or step.truncated or step.error or (further := self._goes_on()) is None:
                break
            last = await ask(Step, self._env, "step", further)
            step = replace(last, reward=step.reward + last.reward, action=step.action, info=step.info | last.info)
        return step
