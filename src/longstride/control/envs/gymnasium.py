"""Gymnasium's vector environments (extra `gymnasium`; Towers et al., 2024, arXiv 2407.17032) as they are: what
`gymnasium.make_vec(id, num_envs=...)` makes is played, with box or discrete actions.

What always holds: an episode ends where the environment says so, and where our horizon runs out; `terminated` and
`truncated` stay apart, and where an environment says both the task has ended; whatever the environment's autoreset mode
(next step, same step, disabled), the last observation of an episode is its own. The package is imported on first use.

An observation is flattened as `gymnasium.spaces.flatten` does. A dictionary with `observation`, `achieved_goal` and
`desired_goal` (a goal environment) is the observation followed by the achieved goal, with the desired goal as the goal
of the episode, so goals can be relabelled. Where the goal is said in `info` (`info_goal`, OGBench's environments) it is
an observation to reach.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from longstride.control import recorded
from longstride.control.envs.base import ControlEpisode, ControlTasks, Spec, VectorEnv, VectorStep
from longstride.core.errors import ConfigError, EnvFailure, LongstrideWarning, RunError, require, short
from longstride.core.foreign import guarded
from longstride.core.modules import import_module
from longstride.core.numbers import Count

GOALS = ("observation", "achieved_goal", "desired_goal")
"""The keys of an observation of a goal environment."""
SUCCESS = ("success", "is_success")
"""Keys of `info` by which an environment says whether an episode is a success."""


FAR = 0.01
"""Part of the width of an action space: a recorded action that is further beyond it was not merely rounded."""
FEW = 0.01
"""Share of recorded actions that may lie so far beyond without a warning."""


class GymnasiumTasks(ControlTasks):
    """A Gymnasium environment by its id: training and test episodes are seeds of its `reset`. An episode is a success
    where `info` says so under `success` or `is_success`, or by `success_above`."""

    id: str
    """As `gymnasium.make_vec` takes it: `CartPole-v1`, or `my_module:My-v0` where `my_module` registers it."""
    kwargs: dict[str, Any] = {}
    """What else `make_vec` is given: `vectorization_mode`, `vector_kwargs`, arguments of the environment."""
    success_above: float | None = None
    """An episode that earned more is a success; None: only the environment says so."""
    wrappers: dict[str, dict[str, Any]] = {}
    """Wrappers of each copy, the first one inside, with their arguments: those of `gymnasium.wrappers` by their name,
    any other as `module:Class`."""
    vector: Count | None = None
    """Copies that are stepped together, at most: of more episodes every `vector` follow one another. None: all are
    stepped together."""
    test_options: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)] = ({},)
    """The `options` of `reset` in each of the test tasks."""
    info_goal: str = ""
    """Key under which the `info` of `reset` has the goal, an observation to reach; empty: nowhere."""
    data: str | tuple[str, ...] = ""
    """Offline data that somebody recorded in this environment: a file `*.hdf5` or `*.npz`, or `minari:NAME` (see
    `control.recorded`), or several of them; empty: none."""
    demonstrations: str = ""
    """The same of a few episodes of the task that is tested, where `data` are of other tasks too; empty: none."""

    @classmethod
    def type_name(cls) -> str:
        return "gym"

    @property
    def spec(self) -> Spec:
        return self.spaces.spec

    @cached_property
    def spaces(self) -> "Spaces":
        """What is observed and done. Raises: as `GymnasiumVectorEnv`."""
        env = GymnasiumVectorEnv(self, [{}], 1, 1)
        env.close()
        return env.spaces

    def dataset(self, seed: int) -> list[ControlEpisode]:
        """What is recorded in `data`, whatever the seed.

        Raises:
            RunError: it cannot be read, or was recorded in an environment with other spaces.
        """
        return self._recorded(*([self.data] if isinstance(self.data, str) else self.data))

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        """What is recorded in `demonstrations`, whatever the seed; errors are those of `dataset`."""
        return self._recorded(self.demonstrations)

    def _recorded(self, *names: str) -> list[ControlEpisode]:
        found = []
        for name in filter(None, names):
            episodes = recorded.read(name)
            found += [self.spaces.read(e, name) for e in episodes]
            self.spaces.warn_of_far_actions(episodes, name)
        return found

    def training(self, count: int, horizon: int) -> VectorEnv:
        return self._copies([{}] * count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        several = len(self.test_options) > 1
        tasks = [(f"{self.id}-{k}" if several else self.id, o) for k, o in enumerate(self.test_options, 1)]
        each = [task for task in tasks for _ in range(count)]
        return self._copies([options for _, options in each], horizon), [name for name, _ in each]

    def _copies(self, options: Sequence[dict[str, Any]], horizon: int) -> VectorEnv:
        """Episodes with these options of `reset`, at most `vector` at a time."""
        together = min(self.vector or len(options), len(options))
        if len(options) % together:
            raise ConfigError(
                f"tasks.vector: {len(options)} episodes are no multiple of {together} copies; choose a divisor"
            )
        return GymnasiumVectorEnv(self, options, together, horizon)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        space = self.spaces.action
        if self.spec.discrete:
            first = np.full(self.spec.action, space.start, np.float32)
            return first, first
        return space.low.reshape(-1), space.high.reshape(-1)

    def in_own_units(self, episode: ControlEpisode) -> ControlEpisode:
        action = self.spaces.taken(episode.action)
        return replace(episode, action=action.reshape(episode.length, -1))

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        """`return`: the sum of the rewards."""
        return {"return": float(episode.reward.sum(dtype=float))}


class Spaces:
    """Observations and actions of one environment, flat for an agent and in the environment's own form.

    Args:
        observation: the space of what one copy shows.
        action: the space of what one copy takes.
        name: of the environment.
        seeks: whether a goal is an observation that is said apart.

    Raises:
        ConfigError: a space does not fit.
    """

    def __init__(self, observation: Any, action: Any, name: str, seeks: bool = False) -> None:
        spaces = require("gymnasium.spaces", "gymnasium")
        self.action, self.name = action, name
        self._with_goals = isinstance(observation, spaces.Dict) and set(observation.spaces) == set(GOALS)
        if self._with_goals and seeks:
            raise ConfigError(
                f"tasks.info_goal: {name} shows its goals itself (`desired_goal`); set tasks.info_goal= to nothing, "
                "and tasks.test_options='[{}]' where its `reset` knows no options"
            )
        self._seen = [observation[key] for key in GOALS] if self._with_goals else [observation]
        self._flatten = spaces.flatten
        try:
            sizes = [spaces.flatdim(space) for space in self._seen]
        except (NotImplementedError, ValueError) as e:
            raise ConfigError(f"tasks: {name} shows {short(observation)}, which has no flat form: {e}") from e
        width = sum(sizes[:2])
        goal = tuple(range(0 if seeks else sizes[0], width)) if seeks or self._with_goals else ()
        self._numbered = int(observation.n) if isinstance(observation, spaces.Discrete) else 0
        self._first = int(observation.start) if self._numbered else 0
        if isinstance(action, spaces.Discrete):
            self.spec = Spec(width, int(action.n), goal, discrete=True)
        elif isinstance(action, spaces.Box) and action.is_bounded() and action.dtype.kind == "f":
            self.spec = Spec(width, spaces.flatdim(action), goal)
        else:
            raise ConfigError(
                f"tasks: {name} takes actions of {short(action)}; expected a Discrete space or a bounded Box of real "
                "numbers: register the environment with a gymnasium.ActionWrapper that has one"
            )

    def flat(self, one: Any) -> tuple[np.ndarray, np.ndarray]:
        """[O] observation and [G] goal of what one copy shows."""
        parts = [one[key] for key in GOALS] if self._with_goals else [one]
        flat = [self._flatten(space, part).astype(np.float32) for space, part in zip(self._seen, parts, strict=True)]
        return np.concatenate(flat[:2]), flat[2] if self._with_goals else np.zeros(0, np.float32)

    def taken(self, action_BA: np.ndarray) -> np.ndarray:
        """[B, ...] actions as the environment takes them."""
        space = self.action
        if self.spec.discrete:
            return action_BA.argmax(1) + space.start
        share_BA = (np.clip(action_BA, -1, 1).reshape(-1, *space.shape) + 1) / 2
        return (space.low + share_BA * (space.high - space.low)).astype(space.dtype)

    def read(self, found: ControlEpisode, name: str) -> ControlEpisode:
        """A recorded episode as an agent sees it: actions beyond the space are moved to its border.

        Raises:
            RunError: it does not fit; `name` says where it is from.
        """
        spec, observation, action = self.spec, found.observation, found.action
        if self._numbered and observation.shape[1] == 1 != spec.observation:
            observation = self._row(observation, self._first, spec.observation, name)
        if spec.discrete and action.shape[1] == 1 != spec.action:
            action = self._row(action, int(self.action.start), spec.action, name)
        sizes = (observation.shape[1], action.shape[1], len(spec.goal) if found.goal is None else len(found.goal))
        if sizes[:2] != (spec.observation, spec.action) or (spec.goal and sizes[2] != len(spec.goal)):
            raise RunError(
                f"{name} was not recorded in {self.name}: its observations, actions and goals are of the sizes "
                f"{sizes}, those of the environment of {(spec.observation, spec.action, len(spec.goal))}"
            )
        if not spec.discrete:
            low, high = self.action.low.reshape(-1), self.action.high.reshape(-1)
            action = np.clip(2 * (action - low) / (high - low) - 1, -1, 1)
        goal = found.goal if spec.goal else None
        return ControlEpisode(observation, action.astype(np.float32), found.reward, found.terminated, goal)

    def warn_of_far_actions(self, episodes: Sequence[ControlEpisode], name: str) -> None:
        """Warns where more than a few recorded actions are so far beyond the space that they may have other units."""
        if self.spec.discrete:
            return
        low, high = self.action.low.reshape(-1), self.action.high.reshape(-1)
        action_TA = np.concatenate([e.action for e in episodes])
        beyond_T = (np.maximum(low - action_TA, action_TA - high) / (high - low)).max(1)
        if (share := (beyond_T > FAR).mean()) > FEW:
            furthest = action_TA[beyond_T.argmax()].tolist()
            warnings.warn(
                f"{name}: {share:.0%} of its actions lie beyond the action space of {self.name}, {short(self.action)}, "
                f"and are moved to its border; the furthest is {short([round(a, 3) for a in furthest])}. If they are "
                "in other units, scale them to the space",
                LongstrideWarning,
                stacklevel=2,
            )

    def _row(self, number_B1: np.ndarray, first: int, count: int, name: str) -> np.ndarray:
        """[B, count] rows of zeros with a one, of numbers that begin with `first`."""
        number_B = number_B1[:, 0] - first
        odd_B = (number_B % 1 != 0) | (number_B < 0) | (number_B >= count)
        if odd_B.any():
            raise RunError(
                f"{name} was not recorded in {self.name}, whose discrete values are whole numbers from {first} to "
                f"{first + count - 1}: it has {number_B1[odd_B][0, 0]:g}"
            )
        return np.eye(count, dtype=np.float32)[number_B.astype(int)]


class GymnasiumVectorEnv(VectorEnv):
    """B copies of a Gymnasium environment.

    Args:
        tasks: which environment.
        options: of `reset`, for each episode: B in each turn.
        count: B.
        horizon: steps until an episode is truncated, where the environment does not truncate it before.

    Raises:
        MissingExtra: gymnasium is not installed.
        ConfigError: the environment cannot be made, or its spaces do not fit.
    """

    def __init__(self, tasks: GymnasiumTasks, options: Sequence[dict[str, Any]], count: int, horizon: int) -> None:
        gymnasium = require("gymnasium", "gymnasium")
        self.tasks, self.options, self.count, self.horizon = tasks, options, count, horizon
        self.turns, self._turn = len(options) // count, 0
        kwargs = dict(tasks.kwargs)
        if tasks.wrappers:  # a vector environment of the environment's own has no copies to wrap
            kwargs = {"vectorization_mode": "sync", "wrappers": _wrappers(tasks.wrappers)} | kwargs
        if ":" in tasks.id:
            import_module(tasks.id.partition(":")[0])
        try:
            self.env = gymnasium.make_vec(tasks.id, num_envs=self.count, **kwargs)
        except Exception as e:  # of somebody else's environment
            first = str(e).partition("\n")[0] or type(e).__name__
            own = "; one of your own is `module:ID`, where importing the module registers it"
            hint = own if isinstance(e, gymnasium.error.UnregisteredEnv) else ""
            raise ConfigError(f"tasks: gymnasium cannot make {tasks.id}: {first}{hint}") from e
        modes = gymnasium.vector.AutoresetMode
        mode = self.env.metadata.get("autoreset_mode", modes.NEXT_STEP)
        self._same_step, self._disabled = mode == modes.SAME_STEP, mode == modes.DISABLED
        self._iterate = gymnasium.vector.utils.iterate
        seen, taken = self.env.single_observation_space, self.env.single_action_space
        self.spaces = Spaces(seen, taken, tasks.id, bool(tasks.info_goal))

    def reset(self, seed: int) -> np.ndarray:
        """Raises: EnvFailure where the environment raises, or shows what is not finite; `step` too."""
        first = self._turn * self.count
        self._turn = (self._turn + 1) % self.turns
        options, goals = self.options[first : first + self.count], []
        kinds = [o for k, o in enumerate(options) if o not in options[:k]]
        for kind in kinds:  # all copies begin with the first kind, and those of another one begin again
            mask_B = np.array([kind is kinds[0] or o == kind for o in options])
            others = {} if mask_B.all() else {"reset_mask": mask_B}
            # many environments take 32 bits, and copies add their number
            with guarded(f"{self.tasks.id}.reset"):
                observation, info = self.env.reset(seed=seed % 2**31, options=kind | others or None)
                self._observation, self.goal = self._read(observation)
            goals.append((mask_B, info.get(self.tasks.info_goal)))
        if self.tasks.info_goal:
            self.goal = np.zeros((self.count, self.spaces.spec.observation), np.float32)
            for mask_B, goal in goals:
                self.goal[mask_B] = self._said_goal(goal)[mask_B]
        self._finite("reset", observations=self._observation, goals=self.goal)
        self._taken, self._earned = 0, np.zeros(self.count)
        self._terminated, self._truncated, self._success = (np.zeros(self.count, dtype=bool) for _ in range(3))
        return self._observation

    def step(self, action_BA: np.ndarray) -> VectorStep:
        ended_B = self._terminated | self._truncated
        with guarded(f"{self.tasks.id}.step"):
            if self._disabled and ended_B.any():  # what has ended must not be stepped on
                self.env.reset(options={"reset_mask": ended_B})
            found, reward_B, terminated_B, truncated_B, info = self.env.step(self.spaces.taken(action_BA))
            observation_BO, success_B = self._read(found)[0], self._said(info)
            if self._same_step:  # what ends has begun again: its last step is told apart
                success_B = np.where(terminated_B | truncated_B, self._said(info.get("final_info", {})), success_B)
                for b in np.flatnonzero((terminated_B | truncated_B) & ~ended_B):
                    observation_BO[b] = self.spaces.flat(info["final_obs"][b])[0]
        self._taken += 1
        reward_B = np.where(ended_B, 0.0, reward_B)
        self._earned += reward_B
        self._observation = np.where(ended_B[:, None], self._observation, observation_BO)
        self._finite("step", observations=self._observation, rewards=reward_B)
        self._terminated = np.where(ended_B, self._terminated, terminated_B)
        over_B = ~self._terminated & (truncated_B | (self._taken >= self.horizon))
        self._truncated = np.where(ended_B, self._truncated, over_B)
        if self.tasks.success_above is not None:
            success_B = success_B | (self._earned > self.tasks.success_above)
        self._success = np.where(ended_B, self._success, success_B)
        return VectorStep(self._observation, reward_B, self._terminated, self._truncated, self._success)

    def close(self) -> None:
        self.env.close()

    def _read(self, found: Any) -> tuple[np.ndarray, np.ndarray]:
        """[B, O] observations and [B, G] goals of what the copies show."""
        flat = [self.spaces.flat(one) for one in self._iterate(self.env.observation_space, found)]
        return np.stack([o for o, _ in flat]), np.stack([g for _, g in flat])

    def _finite(self, method: str, **arrays: np.ndarray) -> None:
        """Raises: EnvFailure for a number that no network can read."""
        for what, array in arrays.items():
            if not (finite := np.isfinite(array)).all():
                odd = array[~finite][0]
                raise EnvFailure(f"{self.tasks.id}.{method} returned {what} with {odd}; expected finite numbers")

    def _said_goal(self, goal_B: Any) -> np.ndarray:
        """[B, O] goals that `reset` said.

        Raises:
            ConfigError: they are no observations.
        """
        shape = (self.count, self.spaces.spec.observation)
        if goal_B is None or np.shape(goal_B) != shape:
            raise ConfigError(
                f"tasks.info_goal: `info` of {self.tasks.id} has {short(goal_B)} under {self.tasks.info_goal!r}; "
                f"expected an observation of {shape[1]} numbers"
            )
        return goal_B

    def _said(self, info: dict[str, Any]) -> np.ndarray:
        """[B] whether the environment calls what it has done a success."""
        nothing_B = np.zeros(self.count, dtype=bool)
        return np.any([info.get(key, nothing_B) for key in SUCCESS], axis=0)


def _wrappers(wrappers: dict[str, dict[str, Any]]) -> list[Callable[[Any], Any]]:
    """What wraps a copy.

    Raises:
        ConfigError: there is none of a name.
    """
    made = []
    for name, kwargs in wrappers.items():
        module, _, cls = name.rpartition(":")
        wrapper = getattr(import_module(module or "gymnasium.wrappers"), cls, None)
        if wrapper is None:
            raise ConfigError(
                f"tasks.wrappers: there is no {name}; expected a name of gymnasium.wrappers, or module:Class"
            )
        made.append(functools.partial(wrapper, **kwargs))
    return made
