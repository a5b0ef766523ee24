"""Offline data sets made here: an agent is trained online, and plays at several stages of its training.

| set | episodes |
|---|---|
| `random` | of actions drawn uniformly |
| `medium` | of the agent at the first evaluation that was a third of the way from the untrained to the trained one |
| `medium-replay` | all that was collected in training until then |
| `expert` | of the trained agent |
| `mixed` | those of `medium`, then those of `expert` |

These are the sets of D4RL (arXiv 2004.07219), whose results are not to be printed beside those from here: the agents
are others. Agents act as in training, with noise.

What always holds: sets follow from the recipe and the number of episodes alone; actions are in the units of the
environment; `card.json` says returns, coverage and seeds, and is written last, so what has it is whole. Training that
was stopped goes on where it was.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from longstride import __version__
from longstride.control import recorded
from longstride.control.coverage import CELLS, Plane
from longstride.control.envs.base import Act, ControlEpisode, Spec, play
from longstride.control.evaluation import trained_agent
from longstride.control.recipe import ControlRecipe
from longstride.core.errors import ConfigError, RunError, require
from longstride.core.files import write_atomically
from longstride.core.provenance import commit
from longstride.core.sealed import dumps
from longstride.core.seeds import derive
from longstride.run.folder import read_rows
from longstride.run.listener import Listener

SETS = ("random", "medium", "medium-replay", "mixed", "expert")
FORMS = ("hdf5", "npz", "minari")
MEDIUM = 1 / 3
"""How far `medium` is from the untrained to the trained agent (D4RL)."""
RUN, MEDIUM_RUN, CARD, PAGE = "run", "run-medium", "card.json", "README.md"


def make_data(
    recipe: ControlRecipe, folder: Path, form: str = "hdf5", episodes: int = 100, listener: Listener | None = None
) -> dict[str, Any]:
    """Trains the agent of a recipe and writes the sets of its stages; returns the card.

    Args:
        recipe: collects episodes in all its phases, and has no offline data.
        folder: gets a file for each of `SETS` (of form `minari`: a data set `FOLDER/SET-v0` in Minari's folder), the
            card, as `README.md` too, and the training runs.
        form: one of `FORMS`.
        episodes: of `random`, `medium` and `expert`.
        listener: of the training.

    Raises:
        MissingExtra: what writes the form is not installed.
        ConfigError: the recipe has offline data, does not collect, or forgets what it has collected.
        RunError: the sets are there already; the trained agent is not better than the untrained one, or there was no
            evaluation between.
    """
    if form not in FORMS:
        raise ConfigError(f"data sets are written as {', '.join(FORMS)}, not {form!r}")
    if form != "npz":
        require("h5py", "minari")
    if not all(phase.episodes for phase in recipe.phases):
        raise ConfigError(
            f"{recipe.name} has a phase that collects no episodes; data are made by a recipe that is online"
        )
    if recipe.tasks.dataset(derive(recipe.seed, "dataset")):
        raise ConfigError(
            f"{recipe.name} learns from offline data too, so its stages would not be those of an agent that practises; "
            "take a recipe without them, such as sac or td3"
        )
    if recipe.agent.on_policy:
        raise ConfigError(f"{recipe.name} learns on-policy and keeps no earlier episodes; take sac or td3")
    if (folder / CARD).exists():
        raise RunError(f"{folder} has its data already; choose another place with --out")
    _train(recipe, folder / RUN, listener)
    curve = _curve(folder / RUN)
    stage = _medium(curve, recipe)
    medium = recipe.replace(phases=_first(recipe, stage), evaluation={"every": stage})
    _train(medium, folder / MEDIUM_RUN, listener)

    agents: dict[str, Act] = {"random": _uniform(recipe.tasks.spec, derive(recipe.seed, "data", "random", "actions"))}
    collected: Sequence[ControlEpisode] = ()
    for name, found, run in (("medium", medium, MEDIUM_RUN), ("expert", recipe, RUN)):
        learner, store = trained_agent(found, folder / run)
        agents[name] = learner.actor(derive(recipe.seed, "data", name, "noise"), explore=True)
        if name == "medium":
            collected = store.all_episodes()
    sets = {name: _played(recipe, agent, name, episodes) for name, agent in agents.items()}
    sets |= {"medium-replay": list(collected), "mixed": [*sets["medium"], *sets["expert"]]}
    card = _card(recipe, sets, stage, curve)
    for name in SETS:
        target = f"minari:{folder.name}/{name}-v0" if form == "minari" else str(folder / f"{name}.{form}")
        recorded.write(target, [recipe.tasks.in_own_units(e) for e in sets[name]])
        card["sets"][name]["written"] = target if form == "minari" else f"{name}.{form}"
    write_atomically(folder / PAGE, page(card))
    write_atomically(folder / CARD, dumps(card, indent=1) + "\n")
    return card


def _train(recipe: ControlRecipe, folder: Path, listener: Listener | None) -> None:
    recipe.train(folder, listener, resume=folder.exists())


def _first(recipe: ControlRecipe, iterations: int) -> tuple[Any, ...]:
    """The phases of the first iterations."""
    phases, left = [], iterations
    for phase in recipe.phases:
        if left > 0:
            phases.append(phase.replace(iterations=min(left, phase.iterations)))
        left -= phase.iterations
    return tuple(phases)


def _curve(run: Path) -> list[tuple[int, float]]:
    """Mean return (success, where tasks measure no return) of each evaluation, by iteration."""
    found = [(r["iteration"], r["measures"]) for r in read_rows(run / "metrics.jsonl") if r["kind"] == "eval"]
    return [(iteration, float(np.mean(of.get("return", of["success"])))) for iteration, of in found]


def _medium(curve: Sequence[tuple[int, float]], recipe: ControlRecipe) -> int:
    """The iteration of the medium agent."""
    (_, start), (last, end) = curve[0], curve[-1]
    if end <= start:
        raise RunError(
            f"the trained agent of {recipe.name} is not better than the untrained one ({end:.4g}, {start:.4g}): no set "
            "would be what its name says; train it for longer, or otherwise"
        )
    stage = next(i for i, value in curve if value >= start + MEDIUM * (end - start))
    if stage == last:
        raise RunError(
            f"no evaluation of {recipe.name} stands between the untrained and the trained agent: set evaluation.every "
            f"below {recipe.evaluation.every}, or take more iterations of fewer updates"
        )
    return stage


def _uniform(spec: Spec, seed: int) -> Act:
    """Any action, all alike."""
    rng = np.random.default_rng(seed)

    def act(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        if spec.discrete:
            return np.eye(spec.action, dtype=np.float32)[rng.integers(spec.action, size=len(first_B))]
        return rng.uniform(-1, 1, (len(first_B), spec.action)).astype(np.float32)

    return act


def _played(recipe: ControlRecipe, agent: Act, name: str, episodes: int) -> list[ControlEpisode]:
    with closing(recipe.tasks.training(episodes, recipe.test_horizon.at(1))) as env:
        return play(env, agent, derive(recipe.seed, "data", name))


def _card(
    recipe: ControlRecipe, sets: dict[str, list[ControlEpisode]], stage: int, curve: Sequence[tuple[int, float]]
) -> dict[str, Any]:
    visited = _visited(sets)
    everywhere = set().union(*visited.values())
    low, high = (float(np.mean([e.reward.sum() for e in sets[name]])) for name in ("random", "expert"))
    return {
        "recipe": recipe.as_data(),
        "seed": recipe.seed,
        "longstride": __version__,
        "commit": commit(),
        "medium_iteration": stage,
        "evaluations": [list(point) for point in curve],
        "random_return": low,
        "expert_return": high,
        "sets": {
            name: {
                **_summary(sets[name]),
                "quality": (float(np.mean([e.reward.sum() for e in sets[name]])) - low) / (high - low)
                if high != low
                else 0.0,
                "coverage": len(visited[name]) / len(everywhere),
                "seed": derive(recipe.seed, "data", name) if name in ("random", "medium", "expert") else None,
            }
            for name in SETS
        },
    }


def _summary(episodes: Sequence[ControlEpisode]) -> dict[str, Any]:
    returns = np.array([e.reward.sum(dtype=float) for e in episodes])
    return {
        "episodes": len(episodes),
        "steps": sum(e.length for e in episodes),
        "return": float(returns.mean()),
        "return_std": float(returns.std()),
        "return_least": float(returns.min()),
        "return_most": float(returns.max()),
        "terminated": float(np.mean([e.terminated for e in episodes])),
    }


def _visited(sets: dict[str, list[ControlEpisode]]) -> dict[str, set[tuple[int, ...]]]:
    """The cells that each set visits, of the plane of all sets."""
    seen = {name: np.concatenate([e.observation for e in episodes]) for name, episodes in sets.items()}
    plane = Plane.of(np.concatenate(list(seen.values())))
    return {name: set(map(tuple, plane.cells(found).tolist())) for name, found in seen.items()}


def page(card: dict[str, Any]) -> str:
    """The card as a page."""
    recipe, sets = card["recipe"], card["sets"]
    task = recipe["tasks"].get("id", recipe["tasks"]["type"])
    rows = "".join(
        f"| `{s['written']}` | {s['episodes']} | {s['steps']} | {s['return']:.1f} ± {s['return_std']:.1f} | "
        f"{s['return_least']:.1f} to {s['return_most']:.1f} | {s['quality']:.2f} | {s['coverage']:.2f} | "
        f"{s['terminated']:.2f} | {'' if s['seed'] is None else s['seed']} |\n"
        for s in (sets[name] for name in SETS)
    )
    return PAGE_TEXT.format(
        task=task,
        recipe=recipe["name"],
        seed=card["seed"],
        version=card["longstride"],
        commit=f", commit {card['commit'][:12]}" if card["commit"] else "",
        medium=card["medium_iteration"],
        last=card["evaluations"][-1][0],
        cells=CELLS,
        rows=rows,
    )


PAGE_TEXT = """# Data of `{task}`

Made by the recipe `{recipe}` with seed {seed} (Longstride {version}{commit}). `medium` is the agent after iteration
{medium}, `expert` after iteration {last}; both act with the noise of training. `medium-replay` is all that was
collected until iteration {medium}, `mixed` is `medium` and `expert`.

| set | episodes | steps | return | from, to | quality | coverage | terminated | seed |
|---|---|---|---|---|---|---|---|---|
{rows}
Return is the mean ± standard deviation of episodes. Quality is 0 at the return of `random` and 1 at that of `expert`.
Coverage is the share of cells visited, of those that all sets visit: {cells} by {cells} cells of the plane of the two
leading principal components of the standardised observations. These are not the data of D4RL: do not print results
beside its own. `card.json` has the same numbers, and the recipe.
"""
