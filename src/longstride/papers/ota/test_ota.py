"""Options by hand, and one step as an option."""

import numpy as np
import pytest
import torch

from longstride.control import Goals, NStep, TransitionStore
from longstride.control.envs import ControlEpisode, Spec
from longstride.models.mlp import Trunk
from longstride.papers.hiql.recipe import hiql

SPEC = Spec(observation=1, action=1, goal=(0,))


class At(Goals):
    """Goals in given rows."""

    at: tuple[int, ...]

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.array(self.at)


def test_an_option_is_discounted_once_and_a_goal_within_it_earns_one() -> None:
    """Rows 0 to 6; from row 0 to the goals 0, 2, 3 and 6, from row 5, whose walk ends first, to 2."""
    store = TransitionStore.of([ControlEpisode(np.arange(7.0)[:, None], np.zeros((6, 1)), np.zeros(6), False)])
    option = NStep(goals=At(at=(0, 2, 3, 6, 2)), steps=3, discount=0.5, discount_per="transition")
    rows, rng = np.array([0, 0, 0, 0, 5]), np.random.default_rng(0)
    batch = option(store, SPEC, rows, rng)
    assert batch.reward_B.tolist() == [1, 1, 0, 0, 0] and batch.discount_B.tolist() == [0, 0, 0.5, 0.5, 0.5]
    assert batch.next_state_BS[:, 0].tolist() == [0, 2, 3, 3, 6]
    one, step = (option.replace(steps=1, discount_per=per)(store, SPEC, rows, rng) for per in ("transition", None))
    assert all(torch.equal(a, b) for a, b in zip(one[:-1], step[:-1], strict=True))
    with pytest.raises(ValueError, match="goes with relabelled goals"):
        NStep(steps=3, discount_per="transition")


def test_only_the_values_of_way_points_have_options() -> None:
    high, low = hiql(Trunk(width=8, depth=1), options=5).levels
    assert (high.data.steps, high.data.discount_per, high.policy_steps) == (5, "transition", 25)
    plain = hiql(Trunk(width=8, depth=1))
    assert low == plain.levels[1] and high.replace(data=plain.levels[0].data) == plain.levels[0]
