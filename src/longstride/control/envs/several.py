"""Several environments as one: what an agent learns that has to know which of them it is in.

What always holds: an observation is that of its environment, then zeros up to the widest one, then a row of zeros with
a one, which says which environment it is (`Spec.tasks`); actions beyond those that an environment takes are dropped;
the copies of each environment are as many, or one more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.control.envs.base import ControlEpisode, ControlTasks, ShortestWay, Spec, VectorEnv, VectorStep
from longstride.core.errors import ConfigError
from longstride.core.seeds import derive


class Several(ControlTasks):
    """Environments that one agent learns, all with discrete actions, as many each, or all with real-valued ones."""

    parts: Annotated[dict[str, ControlTasks], Field(min_length=2)]
    """Them, by the names that their tests get."""

    @cached_property
    def spec(self) -> Spec:
        """Sizes of the widest.

        Raises:
            ConfigError: they cannot be learned by one agent.
        """
        specs = {name: part.spec for name, part in self.parts.items()}
        first = next(iter(specs.values()))
        for name, of in specs.items():
            kind = (of.discrete, of.goal, of.action if of.discrete else 0)
            if kind != (first.discrete, first.goal, first.action if first.discrete else 0) or of.tasks:
                raise ConfigError(
                    f"tasks.parts.{name} does not fit beside {next(iter(specs))}: expected as many discrete actions, "
                    f"or real-valued ones in all, and goals of the same columns; got {of} beside {first}"
                )
        wide = max(of.observation for of in specs.values())
        return Spec(
            wide + len(specs),
            max(of.action for of in specs.values()),
            first.goal,
            first.discrete,
            tasks=tuple(range(wide, wide + len(specs))),
        )

    def beside(self) -> str:
        return repr({name: part.beside() for name, part in self.parts.items()})

    def dataset(self, seed: int) -> list[ControlEpisode]:
        """The offline data of all."""
        return self._of_all(part.dataset(derive(seed, "part", name)) for name, part in self.parts.items())

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        """The demonstrations of all."""
        return self._of_all(part.demonstrated(derive(seed, "part", name)) for name, part in self.parts.items())

    def _of_all(self, parts: Iterable[Sequence[ControlEpisode]]) -> list[ControlEpisode]:
        return [
            replace(e, observation=self.seen(e.observation, k), action=_padded(e.action, self.spec.action))
            for k, episodes in enumerate(parts)
            for e in episodes
        ]

    def training(self, count: int, horizon: int) -> "SeveralEnv":
        """Raises: ConfigError: there are fewer copies than environments."""
        if count < len(self.parts):
            raise ConfigError(
                f"episodes ({count}) are fewer than the {len(self.parts)} environments of tasks.parts; set "
                f"{len(self.parts)} or more in each phase that collects"
            )
        share = np.diff(np.arange(len(self.parts) + 1) * count // len(self.parts))
        parts = zip(self.parts.values(), share.tolist(), strict=True)
        return SeveralEnv(self, [part.training(n, horizon) for part, n in parts])

    def tests(self, count: int, horizon: int) -> tuple["SeveralEnv", Sequence[str]]:
        made = {name: part.tests(count, horizon) for name, part in self.parts.items()}
        names = [name if len(set(own)) == 1 else f"{name}/{one}" for name, (_, own) in made.items() for one in own]
        return SeveralEnv(self, [env for env, _ in made.values()]), names

    def seen(self, observation_BO: np.ndarray, number: int) -> np.ndarray:
        """[B, O] what is seen in the environment of that number."""
        wide_BO = _padded(observation_BO, self.spec.observation)
        wide_BO[:, self.spec.tasks[number]] = 1
        return wide_BO

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        """Those of its environment."""
        _, part, own = self._apart(episode)
        return part.measures(own)

    def way(self, episode: ControlEpisode) -> ShortestWay | None:
        """That of its environment."""
        number, part, own = self._apart(episode)
        if (found := part.way(own)) is None:
            return None
        along, back = (_padded(of, self.spec.action) for of in (found.along, found.back))
        return ShortestWay(self.seen(found.observation, number), found.goal, along, back)

    def _apart(self, episode: ControlEpisode) -> tuple[int, ControlTasks, ControlEpisode]:
        """The number of an episode's environment, the environment, and the episode as it is there."""
        number = int(episode.observation[0, list(self.spec.tasks)].argmax())
        part = list(self.parts.values())[number]
        narrow = {"observation": part.spec.observation, "action": part.spec.action}
        return number, part, replace(episode, **{name: getattr(episode, name)[:, :n] for name, n in narrow.items()})

    def in_own_units(self, episode: ControlEpisode) -> ControlEpisode:
        """Raises: ConfigError: they have no units in common."""
        raise ConfigError("tasks.parts have no units in common; make data in one of them")

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Raises: ConfigError: they have none in common."""
        raise ConfigError("tasks.parts have no bounds of actions in common; export an agent of one of them")


class SeveralEnv(VectorEnv):
    """The copies of the first environment, then those of the second, and so on.

    Args:
        tasks: which they are.
        envs: one of each, with as many turns.

    Raises:
        ConfigError: some play more turns than others.
    """

    def __init__(self, tasks: Several, envs: Sequence[VectorEnv]) -> None:
        self.tasks, self.envs, self.turns = tasks, envs, envs[0].turns
        if any(env.turns != self.turns for env in envs):
            raise ConfigError("tasks.parts play their episodes in as many turns; leave out vector, or set it alike")

    def reset(self, seed: int) -> np.ndarray:
        seen = [env.reset(derive(seed, "part", name)) for env, name in zip(self.envs, self.tasks.parts, strict=True)]
        self.goal = np.concatenate([env.goal for env in self.envs])
        self._ends = np.cumsum([len(of) for of in seen])
        return self._seen(seen)

    def step(self, action_BA: np.ndarray) -> VectorStep:
        parts = zip(self.envs, self.tasks.parts.values(), np.split(action_BA, self._ends[:-1]), strict=True)
        steps = [env.step(action[:, : part.spec.action]) for env, part, action in parts]
        success = [step.terminated if step.success is None else step.success for step in steps]
        rest = [np.concatenate(of) for of in zip(*(step[1:4] for step in steps), strict=True)]
        return VectorStep(self._seen([step.observation for step in steps]), *rest, success=np.concatenate(success))

    def _seen(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([self.tasks.seen(of, k) for k, of in enumerate(parts)])

    def close(self) -> None:
        for env in self.envs:
            env.close()


def _padded(array_BN: np.ndarray, width: int) -> np.ndarray:
    """[B, width] with zeros behind."""
    return np.pad(array_BN, ((0, 0), (0, width - array_BN.shape[1]))).astype(np.float32)
