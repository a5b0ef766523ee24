"""Digi-Q on the embedded sites."""

from longstride.methods import Reinforce
from longstride.papers.digi_q.method import BestCandidate, Candidates, FrozenQ
from longstride.setups import sites

RECIPE = sites.recipe(
    "digi_q",
    iterations=1,
    episodes_per_iteration=256,
    budget={"turns": sites.SHORT},
    replay=Candidates(),
    credit=BestCandidate(),
    critic=FrozenQ(),
    loss=Reinforce(),
    learner={"epochs": 2, "batch_samples": 512, "dtype": "float32", "threads": "auto"},
).replace(engine={"processes": "auto"})
