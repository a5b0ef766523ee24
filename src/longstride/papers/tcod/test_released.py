"""TCOD beside its authors' code: what `_compute_distill_window` and `_linear_checkpoint_step` of kokolerk/TCOD
(`trinity/common/workflows/envs/TCOD`, commit 465eef4) return under its published settings, and the advantages of
`_compute_opd_advantage` (`trinity/algorithm/advantage_fn/on_policy_distill_advantage.py`). Its step 0 is iteration 1."""

import numpy as np
import pytest
from by_hand import slopes
from helpers import make_planner, word_chat

from longstride.core.budget import Budget
from longstride.curriculum.schedules import Linear
from longstride.envs.dial import Dial
from longstride.envs.sites.lexicon import names
from longstride.methods import Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, REFERENCE
from longstride.papers.tcod.method import BackToFront
from longstride.papers.tcod.recipe import RECIPE

STEPS = [0, 1, 5, 6, 7, 8, 11, 12, 57, 100, 173, 174, 180, 249]
ALFWORLD = Linear(start=1, limit=30, interval=6, cap=175)
"""One turn more every 6 steps, up to 30."""
WEBSHOP = Linear(start=1, limit=15, interval=4, cap=57)


@pytest.mark.parametrize(
    ("schedule", "released"),
    [
        (ALFWORLD, [1, 1, 1, 2, 2, 2, 2, 3, 10, 17, 29, 30, 30, 30]),
        (WEBSHOP, [1, 1, 2, 2, 2, 3, 3, 4, 15, 15, 15, 15, 15, 15]),
    ],
)
def test_a_horizon_that_grows_by_one_is_a_straight_line(schedule: Linear, released: list[int]) -> None:
    assert [schedule.at(step + 1) for step in STEPS] == released


@pytest.mark.parametrize(("n", "released"), [(5, [4, 4, 3, 2, 0, 0, 0]), (12, [11, 11, 10, 9, 7, 1, 0])])
def test_back_to_front_takes_as_many_turns_of_a_demonstration(n: int, released: list[int]) -> None:
    source = Dial(distances=(n, n))
    chat, sampler = word_chat("Action: click [ 2 3 4 5 ]", *sorted(names(held_out=False))), BackToFront(left=ALFWORLD)
    taken = []
    for step in (0, 5, 6, 12, 24, 60, 72):
        planner = make_planner(source, step + 1, episodes=1, size=1, budget=Budget(turns=30), chat=chat)
        (plan,) = next(sampler.plan(planner))
        assert len(source.demonstrate(plan.task)) == n
        taken.append(len(plan.history))
    assert taken == released


def test_the_gradient_at_the_policy_that_sampled_is_the_released_advantage() -> None:
    student, teacher = [[-0.5, -1.2, -2.0], [-0.7, -0.9]], [[-0.9, -0.4, -2.5], [-0.1, -1.4]]
    released = [[-0.4, 0.8, -0.5], [0.6, -0.5]]
    samples = [
        Sample([0], [1] * len(s), {ADVANTAGES: [0.0] * len(s), BEHAVIOUR: s, REFERENCE: t}, episode=n)
        for n, (s, t) in enumerate(zip(student, teacher, strict=True))
    ]
    _, found = slopes(RECIPE.loss, samples, student)
    for of_turn, expected in zip(found, released, strict=True):  # means over a turn's tokens, then over two turns
        np.testing.assert_allclose(of_turn, -np.array(expected) / len(expected) / 2, atol=1e-9)
