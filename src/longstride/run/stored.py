"""What another run stored: its iterations in place of new ones (`Recipe.replay_run`), its successes to be imitated."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory
from longstride.methods.base import Sample, demonstration
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder
from longstride.run.imitation import Demonstrations
from longstride.run.recipe import Recipe

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat


def stored_iterations(recipe: Recipe, done: int) -> Iterator[tuple[int, list[Trajectory]]]:
    """The iterations after the first `done`, as the run in the folder `recipe.replay_run` collected them.

    Raises:
        RunError: it is no run folder, or one of another format; that run has not so many, or, where it is known how
            many episodes they have, of another size.
    """
    folder = Path(recipe.replay_run)
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


class StoredSuccesses(Demonstrations):
    """Successful episodes of another run, drawn without replacement; its model must have had the same tokenizer."""

    run: Path
    """Its folder."""

    def samples(self, recipe: Recipe, chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        check_run_folder(self.run)
        store = TrajectoryStore(self.run / TRAJECTORIES)
        places = [k for k, record in enumerate(store.records) if record.success and not record.stop.failed]
        if not places:
            raise RunError(f"{store.path} holds no successful episode to imitate; name the folder of another run")
        chosen = sorted(rng.sample(places, min(episodes, len(places))))
        return [
            demonstration(turn.prompt_ids, turn.sampled_ids, 1.0, t.ordinal)
            for t in store.read(chosen)
            for turn in t.turns
            if turn.sampled_ids
        ]
