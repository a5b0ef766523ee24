"""What another run stored, in place of new episodes (`Recipe.stored_run`)."""

from collections.abc import Iterator
from pathlib import Path

from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder
from longstride.run.recipe import Recipe


def stored_iterations(recipe: Recipe, done: int) -> Iterator[tuple[int, list[Trajectory]]]:
    """The iterations after the first `done`, as the run in the folder `recipe.stored_run` collected them.

    Raises:
        RunError: it is no run folder, or one of another format; that run has not so many, or, where it is known how
            many episodes they have, of another size.
    """
    folder = Path(recipe.stored_run)
    check_run_folder(folder)
    store = TrajectoryStore(folder / TRAJECTORIES)
    places: dict[int, list[int]] = {}
    for k, record in enumerate(store.records):
        places.setdefault(record.iteration, []).append(k)
    for i in range(done + 1, recipe.iterations + 1):
        if i not in places or not recipe.adaptive and len(places[i]) != recipe.episodes_per_iteration:
            raise RunError(
                f"{store.path} holds no iteration {i} of {recipe.episodes_per_iteration} episodes; set iterations and "
                "episodes_per_iteration to those of the run that stored it"
            )
        yield i, store.read(places[i])
