"""Evaluation of control agents on their test tasks.

What always holds: every evaluation of one seed plays the same starts and goals with the same noise.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from longstride.control.coverage import coverage
from longstride.control.data import FIELDS, TransitionStore
from longstride.control.envs import ControlEpisode, Spec, play_beside
from longstride.control.learner import ControlLearner, act_together
from longstride.control.recipe import ControlRecipe
from longstride.core.errors import RunError
from longstride.core.seeds import derive
from longstride.run.checkpoint import Checkpoint, check_finite, latest_checkpoint
from longstride.stats import wilson_interval

MOST_PATHS, MOST_PLACES = 5, 50
"""Ways that a row holds, and places of each."""
Tested = dict[str, list[ControlEpisode]]
"""The episodes of each test task, by its name."""


def evaluate(
    recipe: ControlRecipe, learner: ControlLearner, progress: Callable[[int, int], None] = lambda done, total: None
) -> Tested:
    """Plays the test tasks; `progress` gets (steps taken, horizon)."""
    return evaluate_beside([recipe], [learner], progress)[0]


def evaluate_beside(
    recipes: Sequence[ControlRecipe],
    learners: Sequence[ControlLearner],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Tested]:
    """As `evaluate`, of several runs side by side (see `ControlRecipe.beside`)."""
    horizon = recipes[0].test_horizon.at(1)
    tests = [recipe.tasks.tests(recipe.evaluation.episodes, horizon) for recipe in recipes]
    actor = act_together(learners, [derive(recipe.seed, "eval", "noise") for recipe in recipes], explore=False)
    with ExitStack() as stack:
        envs = [stack.enter_context(closing(env)) for env, _ in tests]
        seeds = [derive(recipe.seed, "eval") for recipe in recipes]
        episodes = play_beside(envs, actor, seeds, lambda step: progress(step, horizon))
    found: list[Tested] = [{name: [] for name in names} for _, names in tests]
    for tested, (_, names), of_run in zip(found, tests, episodes, strict=True):
        for name, episode in zip(names, of_run, strict=True):
            tested[name].append(episode)
    return found


def evaluate_run(
    recipe: ControlRecipe, folder: Path, watch: Callable[[str], Callable[[int, int], None]]
) -> list[dict[str, Any]]:
    """Evaluates the agent of a run's last checkpoint, and one that was never trained, on the same episodes.

    Args:
        recipe: the run's; seed, horizon and number of episodes may be others.
        folder: of the run.
        watch: gives a progress callback for each of the two, by name.

    Returns:
        The rows of the two evaluations (see `evaluation_row`), the agent's first.

    Raises:
        RunError: the run has no checkpoint yet; its checkpoint is damaged, or of another agent.
    """
    agent, _ = trained_agent(recipe, folder)
    start = ControlLearner(recipe.agent, recipe.tasks.spec, recipe.seed)
    rows = []
    for name, learner in (("agent", agent), ("warm_start", start)):
        tested = evaluate(recipe, learner, watch(name))
        measures = {"success": outcomes_of(tested)} | measures_of(recipe, learner, tested)
        rows.append(evaluation_row(recipe, name, tested) | {"measures": measures})
    return rows


def trained_agent(recipe: ControlRecipe, folder: Path) -> tuple[ControlLearner, TransitionStore]:
    """The agent of a run's last checkpoint, and what it had collected by then.

    Raises:
        RunError: the run has no checkpoint yet; its checkpoint is damaged, or of another agent.
    """
    checkpoint = latest_checkpoint(folder)
    if checkpoint is None:
        raise RunError(f"{folder} has no checkpoint yet; let the run finish an iteration")
    learner = ControlLearner(recipe.agent, recipe.tasks.spec, recipe.seed)
    return learner, restored(learner, checkpoint)


def restored(learner: ControlLearner, checkpoint: Checkpoint, ended: bool = False) -> TransitionStore:
    """What a checkpoint says was collected; the learner becomes what it was then. What does not go on, as its run has
    `ended`, may have diverged.

    Raises:
        RunError: it is damaged, or of another agent.
    """
    tensors = checkpoint.tensors()
    if not ended:
        check_finite(tensors, checkpoint.folder)
    learner.load_state(tensors, checkpoint.numbers)
    try:
        return TransitionStore.from_arrays({name: tensors[f"collected.{name}"].numpy() for name in FIELDS})
    except (KeyError, IndexError) as e:
        raise RunError(f"{checkpoint.folder} is damaged: {type(e).__name__}: {e}") from e


def evaluation_row(recipe: ControlRecipe, policy: str, tested: Tested) -> dict[str, Any]:
    """What a metrics row holds of an evaluation: `policy`, `strategy`, `horizon`, `summary` (see `summary_of`, and for
    each task under `by_source`) and `interval` (95 % Wilson interval of the success rate)."""
    outcomes = outcomes_of(tested)
    return {
        "policy": policy,
        "strategy": "direct",
        "horizon": recipe.test_horizon.at(1),
        "summary": summary_of([e for episodes in tested.values() for e in episodes])
        | {"by_source": {name: summary_of(episodes) for name, episodes in tested.items()}},
        "interval": list(wilson_interval(int(sum(outcomes)), len(outcomes))),
    }


def data_row(store: TransitionStore, spec: Spec) -> dict[str, Any]:
    """What a metrics row holds of offline data: how many episodes and steps, the share of terminations, the mean and a
    histogram of the sums of their rewards, and where their states are (`control.coverage`)."""
    count_K, edge_L = np.histogram(store.earned, 12)
    return {
        "episodes": store.episodes,
        "steps": len(store),
        "terminated": _mean(store.terminated.tolist()),
        "return": float(store.earned.mean()),
        "histogram": {"edges": edge_L.tolist(), "counts": count_K.tolist()},
        **coverage(store.observation, spec.goal[:2]),
    }


def outcomes_of(tested: Tested) -> list[float]:
    """1 for each episode that was a success, else 0, task by task: what paired comparisons are made of."""
    return [float(e.solved) for episodes in tested.values() for e in episodes]


def measures_of(recipe: ControlRecipe, learner: ControlLearner, tested: Tested) -> dict[str, list[float]]:
    """What tasks and critics measure of every episode beside success, for each of them, by name; along a shortest way
    (`LevelNets.ordered`, of the level that sees the goal) the episodes of a task have what its first one has."""
    tasks, acting = recipe.tasks, learner.levels[-1]
    of_episodes = []
    for first, *others in tested.values():
        way = tasks.way(first)
        ordered = {} if way is None else learner.levels[0].ordered(way)
        of_episodes += [tasks.measures(e) | acting.measures(tasks, e) | ordered for e in (first, *others)]
    return {name: [of[name] for of in of_episodes] for name in of_episodes[0] if all(name in of for of in of_episodes)}


def paths_of(recipe: ControlRecipe, tested: Tested) -> dict[str, Any]:
    """`{"paths": ...}`: where goals are places (of two coordinates at least), the way of the first episode of each
    task, for the first `MOST_PATHS` tasks: its task, whether it was a success, at most `MOST_PLACES` of its places, and
    its goal."""
    columns = list(recipe.tasks.spec.goal[:2])
    if len(columns) < 2:
        return {}
    found = []
    for name, episodes in list(tested.items())[:MOST_PATHS]:
        first = episodes[0]
        kept = np.unique(np.linspace(0, first.length, MOST_PLACES).round().astype(int))
        places = first.observation[kept][:, columns]
        goal = [] if first.goal is None else first.goal[:2]
        found.append({"task": name, "solved": first.solved, "places": _rounded(places), "goal": _rounded(goal)})
    return {"paths": found}


def _rounded(numbers: Any) -> list[Any]:
    return np.round(np.asarray(numbers, float), 3).tolist()


def summary_of(episodes: Sequence[ControlEpisode]) -> dict[str, Any]:
    """What metrics rows hold of episodes, as defined in `rollout.summary`; a mean of nothing is 0."""
    lengths, solved = [e.length for e in episodes], [e.solved for e in episodes]
    return {
        "episodes": len(episodes),
        "failed": 0,
        "env_steps": sum(lengths),
        "success": _mean(solved),
        "length": _mean(lengths),
        "length_success": _mean([e.length for e in episodes if e.solved]),
        "timeouts": _mean([not e.terminated for e in episodes]),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
