"""T1's anchor: the plateau of a fixed one in closed form, and that a moving one leaves it."""

import numpy as np
from enumerated import ascent

from longstride.exact.answers import Answers
from longstride.methods import KL, Constant, GroupRelative
from longstride.papers.t1.exact import CLAIM
from longstride.papers.t1.method import AnchoredReinforce

BETA = 0.5
PROBLEM = Answers(tasks=((0.2,),), vocabulary=2)
CREDIT = GroupRelative(baseline="leave_one_out", normalize="none")
LOSS = AnchoredReinforce(aggregation=Constant(per="episode"), kl=KL(coefficient=BETA))


def after(anchor: np.ndarray) -> np.ndarray:
    """Probabilities of the fixed point: anchor exp(r / beta) / Z."""
    tilted = PROBLEM.tree.answers(anchor)[0] * np.exp(PROBLEM.tree.rewards[0] / BETA)
    return tilted / tilted.sum()


def test_at_the_closed_form_the_expected_update_is_nothing() -> None:
    anchor = PROBLEM.begin(np.random.default_rng(0))
    there = PROBLEM.tree.logits_of(after(anchor)[None])
    np.testing.assert_allclose(ascent(PROBLEM, there, CREDIT, LOSS, 2, reference=anchor), 0, atol=1e-9)
    p = 0.2
    plateau = p * np.exp(1 / BETA) / (p * np.exp(1 / BETA) + 1 - p)
    np.testing.assert_allclose(PROBLEM.tree.success(there), plateau)


def test_a_fixed_anchor_converges_to_it_and_a_moving_one_goes_on() -> None:
    fixed = logits = PROBLEM.begin(np.random.default_rng(0))
    for _ in range(100):
        logits = logits + 4.0 * ascent(PROBLEM, logits, CREDIT, LOSS, 2, reference=fixed)
    np.testing.assert_allclose(PROBLEM.tree.answers(logits)[0], after(fixed), atol=1e-6)
    moving = PROBLEM.begin(np.random.default_rng(0))
    anchor = moving
    for _ in range(40):
        moving = moving + 4.0 * ascent(PROBLEM, moving, CREDIT, LOSS, 2, reference=anchor)
        anchor = 0.9 * anchor + 0.1 * moving
    assert PROBLEM.tree.success(moving)[0] > PROBLEM.tree.success(logits)[0] + 0.2


def test_the_arms_of_the_claim_move_their_anchors_as_they_say() -> None:
    moved = {}
    for name in ("moving", "fixed"):
        arm = CLAIM.arms[name]
        data: dict = {"method": arm.method, "problem": arm.problem}  # type: ignore[attr-defined]
        state = begin = data["method"].start(data["problem"], np.random.default_rng(0))
        for i in range(2):
            state = data["method"].step(data["problem"], state, np.random.default_rng(i))
        moved[name] = np.abs(state["reference"] - begin["reference"]).max()
    assert moved["fixed"] == 0 < moved["moving"]
