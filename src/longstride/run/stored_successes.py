"""Demonstrations that another run stored."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

from longstride.core.errors import RunError
from longstride.methods.base import Sample, demonstration
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder
from longstride.run.imitation import Demonstrations

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.run.recipe import Recipe


class StoredSuccesses(Demonstrations):
    """Successful episodes of another run, drawn without replacement; its model must have had the same tokenizer."""

    run: Path
    """Its folder."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
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
