"""BRPO beside its authors' code: values that `compute_cot_advantage` and `compute_summary_advantage` of
sail-sg/AnytimeReasoner (`verl/verl/trainer/ppo/brpo.py`, commit 7e3f5bb) give for these answers."""

import numpy as np
import pytest
from helpers import make_trajectory, make_turn

from longstride.papers.anytime_reasoner.method import ANSWER, BY_BUDGET, SEGMENTS, THOUGHT, BudgetRelative

ANSWERS = ("1110 0000 0111 1111", "1111 0110 0110 1110", "0101 0000 0000 0111")
"""Of three thoughts: which of the four answers at each of the four budgets were right."""
RIGHT_N_S_A = np.array([[[int(x) for x in at] for at in of.split()] for of in ANSWERS])
OF_THOUGHTS = {
    "uniform": [
        [0.083333, 0.03125, 0.21875, 0.09747],
        [0.145833, -0.015625, -0.010417, 0.028274],
        [-0.229167, -0.171875, -0.010417, 0.122024],
    ],
    "linear": [
        [0.133333, 0.0875, 0.308333, 0.155952],
        [0.083333, -0.04375, -0.0125, 0.045238],
        [-0.216667, -0.18125, 0.0125, 0.195238],
    ],
    "base": [
        [0.166667, 0.1875, 0.458333, 0.389881],
        [-0.083333, -0.125, 0.0, 0.113095],
        [-0.083333, 0.0, 0.25, 0.488095],
    ],
}
"""By prior: of each thought and segment."""
OF_ANSWERS = [
    [0.25, 0.25, 0.25, -0.75, 0, 0, 0, 0, -0.75, 0.25, 0.25, 0.25, 0, 0, 0, 0],
    [0, 0, 0, 0, -0.5, 0.5, 0.5, -0.5, -0.5, 0.5, 0.5, -0.5, 0.25, 0.25, 0.25, -0.75],
    [-0.5, 0.5, -0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, -0.75, 0.25, 0.25, 0.25],
]


@pytest.mark.parametrize("prior", OF_THOUGHTS)
def test_thoughts_and_answers_have_the_released_advantages(prior: str) -> None:
    played = []
    for n, right_S_A in enumerate(RIGHT_N_S_A):
        evidence = {BY_BUDGET: right_S_A.mean(1).tolist(), SEGMENTS: [1, 1, 1, 1]}
        played.append(make_trajectory([make_turn(range(4))], ordinal=n, role=THOUGHT, evidence=evidence))
    for k, right in enumerate(RIGHT_N_S_A.ravel()):
        played.append(make_trajectory(1, reward=float(right), ordinal=3 + k, group=1 + k // 4, role=ANSWER))
    found = BudgetRelative.model_validate({"prior": prior})(played)
    np.testing.assert_allclose([s.advantages for s in found[:3]], OF_THOUGHTS[prior], atol=1e-6)
    np.testing.assert_allclose([s.advantages[0] for s in found[3:]], np.ravel(OF_ANSWERS), atol=1e-6)
