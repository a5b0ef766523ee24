"""Trials of one who chooses at random in worlds with a hidden rule: what `base-trials` reads after its recitals.

They are few, so it can copy and knows the words of these worlds, and nothing of what can be said in them or of what is
good: that has to come from learning histories. What always holds: demonstration n is a function of the settings, the
seed and n.
"""

import itertools
from collections.abc import Iterator

from longstride.core.numbers import Count
from longstride.core.seeds import derive, stream
from longstride.envs.hidden import Bandits, Corridors, DarkRooms, LinearBandits
from longstride.envs.hidden.bandits import ARMS
from longstride.envs.hidden.base import HiddenWorlds, instance_of
from longstride.envs.hidden.corridors import COLOURS, END, ROOMS, WRONG
from longstride.envs.hidden.dark_rooms import STEPS
from longstride.starts.demonstrators import Demonstration, Demonstrators

WORLDS: tuple[HiddenWorlds, ...] = (
    Bandits(),
    LinearBandits(),
    DarkRooms(size=5, turns=10),
    DarkRooms(turns=20, hidden="key"),
    DarkRooms(begins="corner", hidden="actions"),
    Corridors(),
    Corridors(rooms=4, doors=4),
)
NEXT = "next"
"""Between two episodes of a trial."""


class HiddenWalks(Demonstrators):
    """Trials of all worlds in turn, read as `setups.trials` has them."""

    episodes: Count = 3
    """Of a trial."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            world = WORLDS[n % len(WORLDS)]
            task = world.sample(rng, 1)[0]
            shown, before = Demonstration(task), ""
            for place in range(self.episodes):
                life = instance_of(task, world.kind).start(stream(derive(seed, "life", n), place))
                seen = f"{before}\n{life.look()}".strip()
                for _ in range(task.horizon or 1):
                    choice = rng.choice(life.choices)
                    shown.observations.append(seen)
                    shown.texts.append(choice)
                    shown.weights.append(1.0)
                    earned = life.act(choice)
                    seen = f"{life.look()}\n{earned:g}".strip()
                    if life.over:
                        break
                before = f"{seen}\n{NEXT}"
            yield shown

    def words(self) -> list[str]:
        return [
            *ARMS,
            *STEPS,
            *ROOMS,
            *COLOURS,
            END,
            WRONG,
            NEXT,
            "error : unknown action ; use one of , '",
            "find key and door",
        ]
