"""What another run stored, in place of new episodes (`Recipe.stored_run`)."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory
from longstride.rollout.formats import Found, read_episodes
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import RUN_FILE, check_run_folder
from longstride.run.recipe import Recipe


def stored_iterations(recipe: Recipe, done: int, vocabulary: int) -> Iterator[tuple[int, list[Trajectory]]]:
    """The iterations after the first `done`, as the run in the folder `recipe.stored_run` collected them, or as files
    of exported episodes have them.

    Args:
        recipe: says where.
        done: iterations that are not wanted.
        vocabulary: ids that the policy has; files may have others.

    Raises:
        RunError: it is neither, or of another format; it has not so many iterations, or, where it is known how many
            episodes they have, of another size; files lack what is trained on.
    """
    path = Path(recipe.stored_run)
    if path.exists() and not (path / RUN_FILE).is_file():
        yield from _of_files(recipe, done, vocabulary)
        return
    check_run_folder(path)
    store = TrajectoryStore(path / TRAJECTORIES)
    places: dict[int, list[int]] = {}
    for k, record in enumerate(store.records):
        places.setdefault(record.iteration, []).append(k)
    for i in range(done + 1, recipe.iterations + 1):
        _check_size(recipe, i, len(places.get(i, ())), store.path)
        yield i, store.read(places[i])


def _of_files(recipe: Recipe, done: int, vocabulary: int) -> Iterator[tuple[int, list[Trajectory]]]:
    """One iteration is in memory at a time."""
    path, wanted = Path(recipe.stored_run), 1
    for i, found in groupby(_checked(read_episodes(path), vocabulary), lambda t: t.iteration):
        trajectories = list(found)
        if i != wanted:
            raise RunError(f"{path}: expected the episodes of iteration {wanted}, got those of iteration {i}")
        if i > recipe.iterations:
            return
        _check_size(recipe, i, len(trajectories), path)
        if i > done:
            yield i, trajectories
        wanted += 1
    if wanted <= recipe.iterations:
        _check_size(recipe, wanted, 0, path)


def _checked(episodes: Iterable[Found], vocabulary: int) -> Iterator[Trajectory]:
    """Refuses what cannot be trained on."""
    for ordinal, (place, t, judged) in enumerate(episodes):
        if not judged:
            raise RunError(f"{place}: it says nothing of rewards; only episodes that Longstride exported are replayed")
        if t.ordinal != ordinal:
            raise RunError(f"{place}: expected the episode of ordinal {ordinal}, got {t.ordinal}; export the whole run")
        ids = [i for turn in t.turns for i in (*turn.prompt_ids, *turn.sampled_ids)]
        if t.turns and not any(turn.sampled_ids for turn in t.turns):
            raise RunError(f"{place}: it has no ids with log-probabilities; name it as demonstrations (file_successes)")
        if ids and max(ids) >= vocabulary:
            raise RunError(
                f"{place}: the id {max(ids)} is none of the model's {vocabulary}; take a model of its tokenizer"
            )
        yield t


def _check_size(recipe: Recipe, iteration: int, episodes: int, path: Path) -> None:
    if not episodes or not recipe.adaptive and episodes != recipe.episodes_per_iteration:
        raise RunError(
            f"{path} holds no iteration {iteration} of {recipe.episodes_per_iteration} episodes; set iterations and "
            "episodes_per_iteration to those of the run that stored it"
        )
