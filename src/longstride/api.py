"""What a program does with Longstride: train, evaluate, read a run. `import longstride as ls` has all of it, with the
parts that own recipes are made of (docs/api.md).

What always holds: these functions do what the commands of the same names do, and leave the same run folders.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.core.errors import ConfigError, MissingExtra, RunError
from longstride.run.experiment import RUN_FILE, Experiment, load_run_experiment
from longstride.run.recipe import Recipe

if TYPE_CHECKING:
    from longstride.core.task import Task
    from longstride.core.trajectory import Trajectory
    from longstride.models.api import ChatAPI
    from longstride.models.load import Policy
    from longstride.report.export import Episodes
    from longstride.rollout.formats import Format
    from longstride.run.evaluation import Result
    from longstride.run.listener import Listener
    from longstride.run.placement import Placement
    from longstride.strategies import Strategy


class Table(list[dict[str, Any]]):
    """Rows with named columns; a plain list of dicts besides."""

    def where(self, **equal: Any) -> "Table":
        """The rows that have these values: `metrics.where(kind="eval", policy="agent")`."""
        return Table(row for row in self if all(row.get(name) == value for name, value in equal.items()))

    def column(self, path: str) -> list[Any]:
        """The values at a dotted path, such as `summary.success`; None where a row has none."""
        found: list[Any] = list(self)
        for name in path.split("."):
            found = [value.get(name) if isinstance(value, dict) else None for value in found]
        return found

    def to_pandas(self) -> Any:
        """A pandas DataFrame; a nested value has a column `outer.inner`.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError as e:
            raise MissingExtra("a DataFrame needs pandas: pip install 'longstride[pandas]'") from e
        return pandas.json_normalize(list(self))


class Run:
    """A run folder, finished or not. What it holds is read when it is asked for, and kept; open the folder anew to see
    what was written since.

    Args:
        folder: what `train` wrote.

    Raises:
        RunError: it is no run folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        """Where it is."""
        if not (self.folder / RUN_FILE).is_file():
            raise RunError(f"{self.folder} is no run folder: it has no {RUN_FILE}; give one that `train` wrote")

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @cached_property
    def recipe(self) -> Experiment:
        """What was run, with every number.

        Raises:
            RunError: it is of another format, or a module of the user's own is gone.
        """
        return load_run_experiment(self.folder)

    @cached_property
    def metrics(self) -> Table:
        """The rows of `metrics.jsonl` (docs/architecture.md says what they hold)."""
        from longstride.report.rows import read_record

        return Table(read_record(self.folder).rows)

    @cached_property
    def trajectories(self) -> Table:
        """A row for each training episode, in the order in which they were started: `ordinal`, `iteration`, `task`,
        `source`, `difficulty`, `reward`, `success`, `length`, `stop`, `group`, `role`."""
        return Table(
            {
                "ordinal": r.ordinal,
                "iteration": r.iteration,
                "task": r.task.id,
                "source": r.task.source,
                "difficulty": r.task.difficulty,
                "reward": r.reward,
                "success": r.success,
                "length": r.length,
                "stop": r.stop.value,
                "group": r.group,
                "role": r.role,
            }
            for r in self._store.records
        )

    def trajectory(self, ordinal: int) -> "Trajectory":
        """A training episode with all its turns: prompts, sampled tokens, actions, observations.

        Raises:
            IndexError: there is none of that number.
        """
        return self._store[ordinal]

    @cached_property
    def policy(self) -> "Policy":
        """The model of the last checkpoint, with its tokenizer.

        Raises:
            RunError: nothing was finished yet, or the run trains no language model.
        """
        from longstride.run.policies import load_run

        return load_run(self.folder)[1]

    def resume(
        self,
        listener: "Listener | None" = None,
        placement: "Placement | None" = None,
        track: str | Sequence[str] = (),
        **changes: Any,
    ) -> "Run":
        """Goes on after the last checkpoint; arguments are those of `train`. `iterations` may grow, nothing else may
        differ."""
        return _train(self.recipe.replace(**changes), self.folder, listener, placement, track, resume=True)

    def report(self) -> Path:
        """Writes `report.html` anew, and says where it is."""
        from longstride.report.html import write_report

        return write_report(self.folder)

    def export(self, folder: str | Path, adapter: bool = False) -> Path:
        """Writes the policy as a Hugging Face folder with a model card: merged weights, or LoRA adapters alone.

        Raises:
            RunError: there is nothing to export yet, or the folder holds something.
            ConfigError: adapters are asked for, and the run has none that stand alone.
        """
        from longstride.report.export import export

        return export(self.folder, Path(folder), adapter)

    def export_trajectories(
        self,
        folder: str | Path,
        format: "Format" = "atif",
        episodes: "Episodes" = "training",
    ) -> int:
        """Writes its episodes for other tools (docs/guides/trajectories.md); returns how many.

        Args:
            folder: where to; must not exist, or be empty.
            format: `atif`, `messages`, `sft` or `parquet`.
            episodes: `training`, or those that the run keeps of its evaluations `before` and `after` training.

        Raises:
            RunError: there are none, the folder holds something, or an episode has what the format cannot hold.
        """
        from longstride.report.export import export_trajectories

        return export_trajectories(self.folder, Path(folder), format, episodes)

    @cached_property
    def _store(self) -> Any:
        from longstride.rollout.store import TRAJECTORIES, TrajectoryStore

        return TrajectoryStore(self.folder / TRAJECTORIES)


def compare(*runs: Run | str | Path) -> dict[str, Any]:
    """Compares runs with the first of them: see `report.compare.compare`.

    Raises:
        ConfigError: fewer than two.
    """
    from longstride.report.compare import compare

    return compare([run.folder if isinstance(run, Run) else Path(run) for run in runs])


def load_recipe(name: str | Path) -> Experiment:
    """A recipe by name, as a Python or TOML file, or as `package.module:RECIPE` (see `papers.naming`).

    Raises:
        ConfigError: there is none of that name, or what is there is no recipe.
    """
    from longstride.papers.naming import find_experiment

    return find_experiment(str(name))


def load_run(folder: str | Path) -> Run:
    """A run folder that `train` wrote, finished or not.

    Raises:
        RunError: it is no run folder.
    """
    return Run(folder)


def train(
    recipe: Experiment | str | Path,
    folder: str | Path,
    listener: "Listener | None" = None,
    placement: "Placement | None" = None,
    track: str | Sequence[str] = (),
    **changes: Any,
) -> Run:
    """Trains, in a new run folder, and writes its report.

    Args:
        recipe: what is run, or the name of it (see `load_recipe`).
        folder: where to; it must not hold a run (`Run.resume` goes on with one).
        listener: takes every metrics row; left out, progress is shown as the command line shows it.
        placement: where the parts of the run go; in this process if left out.
        track: trackers that get the numbers besides: `tensorboard`, `wandb`, `trackio`, `mlflow`.
        **changes: other values of the recipe's fields, as `Component.replace` takes them:
            `iterations=5, budget={"turns": 24}, learner={"lr": 1e-4}`.

    Raises:
        ConfigError: no such recipe or tracker, or a value that does not fit.
        RunError: the folder holds a run already.
    """
    found = recipe if isinstance(recipe, Experiment) else load_recipe(recipe)
    return _train(found.replace(**changes), Path(folder), listener, placement, track, resume=False)


def _train(
    recipe: Experiment,
    folder: Path,
    listener: "Listener | None",
    placement: "Placement | None",
    track: str | Sequence[str],
    resume: bool,
) -> Run:
    from longstride.report.live import Live
    from longstride.report.trackers import Tracked

    names = [track] if isinstance(track, str) else track
    with ExitStack() as stack:
        watching = listener or stack.enter_context(Live(recipe.name, recipe.iterations))
        tracked = stack.enter_context(Tracked(names, recipe, folder, watching))
        recipe.train(folder, tracked, resume, placement)
    run = Run(folder)
    run.report()
    return run


def evaluate(
    target: "Run | Policy | ChatAPI | str | Path",
    recipe: Experiment | str | Path | None = None,
    strategy: "Strategy | None" = None,
    held_out: "Sequence[Task] | None" = None,
    progress: Callable[[int, int], None] | None = None,
    folder: str | Path | None = None,
    **changes: Any,
) -> "Result":
    """Plays a policy on held-out tasks.

    Args:
        target: a run, a run folder, a model folder, a Hugging Face name, a policy in memory, or a model behind a chat
            API.
        recipe: gives tasks, environment, context, budget and reward; a run has one of its own.
        strategy: what is done with the policy at test time; `Direct()` if left out.
        held_out: other tasks than the recipe's held-out ones.
        progress: called with (episodes done, all).
        folder: where it is kept, as a run that trained nothing: `compare` and `load_run` read it.
        **changes: other values of the recipe's fields, as in `train`: `evaluation={"tasks": 50}`.

    Returns:
        `summary`, `interval` of the success rate, `measures` by task and the `trajectories`.

    Raises:
        ConfigError: a model without a recipe, or a recipe of another kind than for language agents.
        RunError, ModelError: nothing to be evaluated is there, or `folder` holds a run.
    """
    from longstride.models.api import ChatAPI
    from longstride.models.device import device_here
    from longstride.models.load import Policy, load_policy
    from longstride.run.evaluation import evaluate_policy
    from longstride.run.experiment import counted
    from longstride.run.folder import check_free, keep_evaluation
    from longstride.strategies import Direct

    if folder is not None:
        check_free(Path(folder))
    if isinstance(target, str | Path) and (Path(target) / RUN_FILE).is_file():
        target = Run(target)
    if recipe is None:
        if not isinstance(target, Run):
            raise ConfigError("a model is evaluated on a recipe's tasks: name one, such as evaluate(model, 'tti')")
        recipe = target.recipe
    found = (recipe if isinstance(recipe, Experiment) else load_recipe(recipe)).replace(**changes)
    if not isinstance(found, Recipe):
        raise ConfigError(f"{found.name} is a {found.type_name()}; expected a recipe for language agents")
    policy = target.policy if isinstance(target, Run) else target
    if not isinstance(policy, Policy | ChatAPI):
        policy = load_policy(str(policy), found.chat, device_here(found.device, str(policy)))
    result = evaluate_policy(policy, found, held_out, strategy, progress)
    if folder is not None:
        iteration = counted(target.folder, "iteration") if isinstance(target, Run) else 0
        keep_evaluation(policy, found, Path(folder), [("agent", (strategy or Direct()).name, result)], iteration)
    return result
