"""What another run stored, in place of new episodes (`Recipe.stored_run`)."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
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
    of exported episodes have them. Where an iteration of the recipe has more episodes than one that is stored, it takes
    several: a whole run may be one iteration.

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
        parts = _of_files(path, vocabulary)
    else:
        check_run_folder(path)
        parts = _of_run(path)
    for i in range(1, recipe.iterations + 1):
        reads, size = list[Callable[[], list[Trajectory]]](), 0
        for episodes, read in parts:
            reads.append(read)
            size += episodes
            if recipe.adaptive or size >= recipe.episodes_per_iteration:
                break
        if not size or not recipe.adaptive and size != recipe.episodes_per_iteration:
            raise RunError(
                f"{path} holds no iteration {i} of {recipe.episodes_per_iteration} episodes; set iterations and "
                "episodes_per_iteration to those of the run that stored it, or to 1 and all episodes of it"
            )
        if i > done:
            trajectories = [t for read in reads for t in read()]
            for t in trajectories:
                t.iteration = i
            yield i, trajectories


Part = tuple[int, Callable[[], list[Trajectory]]]
"""A stored iteration: how many episodes it has, and what reads them."""


def _of_run(path: Path) -> Iterator[Part]:
    store = TrajectoryStore(path / TRAJECTORIES)
    for _, found in groupby(enumerate(store.records), lambda placed: placed[1].iteration):
        places = [k for k, _ in found]
        yield len(places), partial(store.read, places)


def _of_files(path: Path, vocabulary: int) -> Iterator[Part]:
    """One of them is in memory at a time."""
    episodes = _checked(read_episodes(path), vocabulary)
    for wanted, (i, found) in enumerate(groupby(episodes, lambda t: t.iteration), 1):
        trajectories = list(found)
        if i != wanted:
            raise RunError(f"{path}: expected the episodes of iteration {wanted}, got those of iteration {i}")
        yield len(trajectories), partial(list, trajectories)


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
