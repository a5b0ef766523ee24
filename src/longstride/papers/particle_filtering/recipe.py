"""Particle filtering with a language model: particles beside a beam and a vote, on chains, step by step.

`longstride eval particle_filtering model=MODEL tasks.type=... --guide ...` is the same with a model, tasks and a scorer of
one's own: a step ends at `mark` (`--strategy particles mark=...`).
"""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.search import Beam, Independent, Particles, Search
from longstride.strategies.searched import Confidence, Guide, Oracle, Searched

N = 8
"""Continuations of a step, of all searches."""


def searches(guide: Guide) -> tuple[Searched, ...]:
    """Particles, the beam and the weighted vote, under one guide."""
    found: tuple[Search, ...] = (Particles(n=N), Beam(n=N, width=2), Independent(n=N, by="weighted"))
    return tuple(Searched(search=search, guide=guide) for search in found)


RECIPE = puzzles.tested("particle_filtering", (Direct(), *searches(Confidence())), tasks=ModularChain())
