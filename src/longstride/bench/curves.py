"""Learning curves beside those of Stable-Baselines3 (online) and d3rlpy (offline), by the same steps and updates.

What always holds: both sides have networks of two hidden layers of as many units, the same rates, batches, discounts
and updates a step, but for what `SIDES` and docs/parity.md name, and are tested in as many episodes; a round is a seed
of each. Offline all learn from one set: what our SAC collects with a seed of its own. Compared are the losses (minus
the return) of Pendulum and of a maze, and the steps that a pole stands, of CartPole and, where MuJoCo is installed on
both sides, of InvertedPendulum, at places of the curve that both sides have passed. `bench/maze.py` has the maze alone.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.bench.peers import Peer, installed
from longstride.control import (
    DQN,
    ControlAgent,
    ControlRecipe,
    Greedy,
    GymnasiumTasks,
    Level,
    TrainingPhase,
    UniformPolicy,
    recorded,
)
from longstride.control.envs.maze import LAYOUTS, TASKS, MazeName
from longstride.control.evaluation import trained_agent
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.papers import load
from longstride.run.folder import read_rows

PLACES = 5
"""Places of a curve that are compared, evenly to its end."""
EPISODES = 10
"""Of a test."""
DATA_SEED = 1000
"""Of the SAC whose steps are the recorded set; no seed of a round."""
PENDULUM, CARTPOLE, INVERTED = "Pendulum-v1", "CartPole-v1", "InvertedPendulum-v5"
MAZE = "curves_maze:Maze-v0"
"""For the peer, whose program lies beside that module."""
PACKAGES = ("stable-baselines3", "d3rlpy")
_TRUNK = Trunk(width=64, depth=2, norm=False, activation="relu")


def _dqn() -> ControlRecipe:
    """Double DQN: the rest is that of PPO's recipe in CartPole."""
    level = Level(critic=DQN(trunk=_TRUNK, tau=0.01), policy=UniformPolicy(), extraction=Greedy(epsilon=0.1))
    agent = ControlAgent(levels=(level,), batch=64, critic_lr=1e-3)
    ppo = load("ppo/control")
    assert isinstance(ppo, ControlRecipe)
    return ppo.replace(name="dqn", agent=agent, phases=(TrainingPhase(iterations=1, episodes=4, utd=1.0),))


def grid(name: MazeName) -> list[str]:
    """A layout without its border, as the rows of `curves_maze.WalledLake` with start and goal of its first test."""
    rows = [list(row.replace("#", "H").replace(".", "F")) for row in LAYOUTS[name].split()]
    for letter, (row, column) in zip("SG", TASKS[name][0], strict=True):
        rows[row][column] = letter
    return ["".join(row[1:-1]) for row in rows[1:-1]]


_GRID = {"rows": grid("umaze")}


def _dqn_of_maze() -> ControlRecipe:
    """Double DQN in the maze. It learns after each episode: four are up to 400 steps there, and of a pole that falls
    about as many as one."""
    made = _dqn()
    (phase,) = made.phases
    tasks = GymnasiumTasks(id=f"longstride.bench.{MAZE}", kwargs=_GRID)
    return made.replace(name="dqn_of_maze", tasks=tasks, phases=(phase.replace(episodes=1),))


@dataclass(frozen=True)
class Compared:
    """An algorithm on both sides."""

    recipe: str | Callable[[], ControlRecipe]
    """Ours, by name; or what makes it."""
    changes: Sequence[str]
    """What it changes, as on the command line."""
    peer: str
    """The peer's class: of `d3rlpy.algos` without `Config`, or of `stable_baselines3`."""
    settings: dict[str, Any]
    """What the peer is given."""
    id: str = PENDULUM
    offline: bool = False
    units: int = 64
    kwargs: dict[str, Any] = field(default_factory=dict)
    """What else the environment is made with."""


_OFF_POLICY = {"learning_rate": 1e-3, "tau": 0.01, "gamma": 0.99, "learning_starts": 0}
_EPISODES = {"train_freq": [2, "episode"], "gradient_steps": -1, "batch_size": 128, "reward_scale": 0.1}
_CLIP = {"n_epochs": 10, "gae_lambda": 0.95, "clip_range": 0.2, "gamma": 0.99}
_EPSILON = {"exploration_initial_eps": 0.1, "exploration_final_eps": 0.1}
_EACH_STEP = {"batch_size": 64, "train_freq": 1, "gradient_steps": 1, "target_update_interval": 1}
_SCALED = ("agent.levels.0.data.reward_scale=0.1",)
_RATES = {"gamma": 0.99, "tau": 0.005, "batch_size": 256, "reward_scale": 0.1, "critic_learning_rate": 3e-4}

SIDES = {
    "SAC": Compared("sac", ("phases.0.utd=1.0",), "SAC", _OFF_POLICY | _EPISODES | {"ent_coef": "auto_0.1"}),
    # one of our updates is two steps of the critics and one of the policy
    "TD3": Compared("td3", (), "TD3", _OFF_POLICY | _EPISODES | {"noise": 0.2}),
    # a rollout is 8 episodes here and 512 steps there, which is as many once they last 64
    "PPO": Compared(
        "ppo/control", (), "PPO", _CLIP | {"learning_rate": 3e-4, "n_steps": 512, "batch_size": 64}, CARTPOLE
    ),
    # theirs learns after every step, ours after four episodes: its target moves while it collects
    "DQN": Compared(
        _dqn,
        (),
        "DQN",
        _OFF_POLICY | _EPSILON | _EACH_STEP,
        CARTPOLE,
    ),
    "DQN, maze": Compared(
        _dqn_of_maze, _SCALED, "DQN", _OFF_POLICY | _EPSILON | _EACH_STEP | {"reward_scale": 0.1}, MAZE, kwargs=_GRID
    ),
    "SAC, MuJoCo": Compared(
        "sac",
        (f"tasks.id={INVERTED}", "phases.0.utd=1.0", "horizon.limit=1000", "test_horizon.limit=1000"),
        "SAC",
        _OFF_POLICY | _EPISODES | {"ent_coef": "auto_0.1"},
        INVERTED,
    ),
    "IQL": Compared("iql/recorded", _SCALED, "IQL", _RATES, offline=True, units=128),
    "TD3+BC": Compared("td3_bc/recorded", _SCALED, "TD3PlusBC", _RATES | {"steps": 2}, offline=True, units=128),
    "AWAC": Compared("awac/recorded", _SCALED, "AWAC", _RATES, offline=True, units=128),
    # their weight of the gap is learned unless its rate is 0
    "CQL": Compared(
        "cql/recorded",
        _SCALED,
        "CQL",
        _RATES | {"n_action_samples": 4, "alpha_learning_rate": 0.0, "actor_learning_rate": 1e-4},
        offline=True,
        units=128,
    ),
}


class _EnoughError(Exception):
    """As many steps were collected as were asked for."""


class _Until:
    """Ends a run at the first evaluation after so many steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def __call__(self, row: dict[str, Any]) -> None:
        if row["kind"] == "eval" and row["total_env_steps"] >= self._steps:
            raise _EnoughError

    def progress(self, phase: str, done: int, total: int) -> None: ...


def recipe_of(side: Compared, seed: int, total: int, data: Path) -> ControlRecipe:
    """Our recipe of an algorithm, for `total` updates of what stands in `data`, or until it is ended."""
    made = load(side.recipe) if isinstance(side.recipe, str) else side.recipe()
    assert isinstance(made, ControlRecipe)
    changes = [f"seed={seed}", f"evaluation.episodes={EPISODES}", "evaluation.every=1", *side.changes]
    if side.offline:
        changes += [f"tasks.id={side.id}", f"tasks.data={data}", "test_horizon.limit=200"]
        changes += [f"phases.0.iterations={PLACES}", f"phases.0.updates={total // PLACES}"]
    else:
        changes.append("phases.0.iterations=100000")
    return resolve(ControlRecipe, made, changes)


def ours(side: Compared, total: int, data: Path, seed: int) -> dict[str, np.ndarray]:
    """Our curve."""
    recipe = recipe_of(side, seed, total, data)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        with suppress(_EnoughError):
            recipe.train(folder, None if side.offline else _Until(total))
        rows = [row for row in read_rows(folder / "metrics.jsonl") if row["kind"] == "eval"]
    x = [row["iteration"] * (total // PLACES) if side.offline else row["total_env_steps"] for row in rows]
    return {"curve": at_places(x, [float(np.mean(row["measures"]["return"])) for row in rows], total)}


def theirs(peer: Peer, side: Compared, total: int, data: Path, seed: int) -> dict[str, np.ndarray]:
    """The peer's curve."""
    asked = {"algorithm": side.peer, "seed": seed, "id": side.id, "units": side.units, "settings": side.settings}
    asked |= {"total": total, "every": total // PLACES, "episodes": EPISODES, "data": str(data) if side.offline else ""}
    asked["kwargs"] = side.kwargs
    found = peer.ask(asked, 36_000)
    return {"curve": at_places(found["x"], found["y"], total)}


def at_places(x: Sequence[float], y: Sequence[float], total: int) -> np.ndarray:
    """[P] of a curve, between whose points it is a line, at places from a P-th of `total` to all of it."""
    return np.interp(np.arange(1, PLACES + 1) * total / PLACES, x, y)


def record(total: int, folder: Path) -> Path:
    """The recorded set: all that our SAC collects in so many steps."""
    recipe = recipe_of(SIDES["SAC"], DATA_SEED, total, folder)
    (phase,) = recipe.phases
    of_one = phase.episodes * recipe.horizon.at(1)  # episodes of Pendulum end by their limit
    recipe = recipe.replace(phases=(phase.replace(iterations=total // of_one),))
    recipe.train(folder / "collecting")
    _, store = trained_agent(recipe, folder / "collecting")
    path = folder / "recorded.npz"
    recorded.write(str(path), [recipe.tasks.in_own_units(episode) for episode in store.all_episodes()])
    return path


def measure(
    peer: str | None, rounds: int, progress: Progress, totals: dict[str, int]
) -> tuple[list[Quantity], dict[str, str]]:
    """The rows: of each algorithm its curve and its end; `totals` are steps, or updates, by algorithm, of all that are
    compared.

    Raises:
        ConfigError: the peer's environment lacks a package.
    """
    compared = {name: side for name, side in SIDES.items() if name in totals}
    needed = {PACKAGES[side.offline] for side in compared.values()}
    versions = {name: installed(peer, name) for name in PACKAGES if name in needed} if peer else {}
    if lacks := [name for name, version in versions.items() if version is None]:
        raise ConfigError(f"--peer {peer} has no {' and no '.join(lacks)}; `make parity` makes such an environment")
    others = {name: side for name, side in compared.items() if side.id != INVERTED}
    if others != compared and (find_spec("mujoco") is None or peer and installed(peer, "mujoco") is None):
        compared = others
        versions["left out: InvertedPendulum"] = "MuJoCo is not installed on both sides"
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data = folder
        if any(side.offline for side in compared.values()):
            progress("collecting the recorded set")
            data = record(totals["SAC"], folder)
        sides = {f"ours {name}": partial(ours, side, totals[name], data) for name, side in compared.items()}
        if peer:
            asked = stack.enter_context(
                Peer(peer, Path(__file__).with_name("curves_peer.py"), {"OMP_NUM_THREADS": "1"})
            )
            sides |= {
                f"peer {name}": partial(theirs, asked, side, totals[name], data) for name, side in compared.items()
            }
        seen = in_turn(sides, rounds, progress, or_fewer=True)
    rows = []
    for name, side in compared.items():
        sign = -1.0 if side.id in (PENDULUM, MAZE) else 1.0
        mine, other = (sign * seen[f"{of} {name}"]["curve"] for of in (("ours", "peer") if peer else ("ours", "ours")))
        library = PACKAGES[side.offline]
        unit, counted = ("steps" if sign > 0 else "minus return"), ("updates" if side.offline else "steps")
        for what, part in (("curve", slice(None)), ("end", slice(-1, None))):
            label = f"{name}, {what} of {totals[name]:,} {counted}"
            against = f"{library} {versions[library]}" if peer else ""
            of_peer = other[:, part] if peer else None
            rows.append(Quantity(label, unit, mine[:, part], of_peer, against, higher_is_better=sign > 0))
    return rows, {"torch": torch.__version__} | {name: str(version) for name, version in versions.items()}


_OFFLINE = tuple(name for name, side in SIDES.items() if side.offline)
LONG = {"SAC": 10_000, "TD3": 10_000, "PPO": 50_000, "DQN": 20_000, "DQN, maze": 1_500, "SAC, MuJoCo": 10_000}
LONG |= dict.fromkeys(_OFFLINE, 20_000)
SHORT = {"SAC": 1_200, "TD3": 1_200, "PPO": 3_000, "DQN": 1_000, "DQN, maze": 500, "SAC, MuJoCo": 500}
SHORT |= dict.fromkeys(_OFFLINE, 200)
"""Steps, or updates, by algorithm."""
EQUAL = (
    "Pendulum-v1, CartPole-v1, MuJoCo's InvertedPendulum-v5 and D4RL's U-maze as a grid; networks of two hidden layers "
    "with ReLU, of 64 units online and 128 offline; rates, batches, discounts, targets and updates a step, but for "
    "what `bench/curves.py` and docs/parity.md name",
    f"a test is {EPISODES} episodes of the policy without noise; a round is a seed of each side",
    "offline: one set, all that our SAC collected with a seed of its own",
    f"a curve is compared at {PLACES} places, evenly to its end, and its interval is over rounds",
)
LIMITS = (
    "the seeds: returns of early training scatter by tens of percent from one to the next. A ratio of 1 is expected; "
    "an interval that leaves it out says that what differs in the definitions matters."
)
MAKE = "  make parity  # then: --peer .parity/bin/python"

_SHORT = Benchmark(
    name="curves-short",
    question="Do algorithms of control begin to learn as those of Stable-Baselines3 and d3rlpy do?",
    equal=EQUAL,
    limits=f"{LIMITS} This is the short form, which shows that both sides run and begin to learn.",
    measure=partial(measure, totals=SHORT),
    how_to_make_peer=MAKE,
    rounds=2,
)

BENCHMARK = Benchmark(
    name="curves",
    question="Do algorithms of control learn as those of Stable-Baselines3 and d3rlpy do, by steps or updates?",
    equal=EQUAL,
    limits=LIMITS,
    measure=partial(measure, totals=LONG),
    how_to_make_peer=MAKE,
    rounds=10,
    short=_SHORT,
)
