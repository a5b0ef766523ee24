"""The transition store and the transitions made from it: nothing crosses the end of an episode, and a truncation is
followed by a value."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longstride.control import Batch, ControlEpisode, Given, Goals, NStep, PointMaze, Relabelled, TransitionStore
from longstride.control import minari as minari_files
from longstride.control.envs import Spec
from longstride.core.errors import ConfigError, RunError
from longstride.papers.sharsa.method import SubgoalAhead

SPEC = Spec(observation=2, action=1, goal=(0,))


def episode(number: int, length: int, terminated: bool, goal: bool = False) -> ControlEpisode:
    """Observations (100 number + t, t), actions -t, rewards t + 1."""
    t = np.arange(length + 1, dtype=np.float32)
    return ControlEpisode(
        np.stack((100 * number + t, t), 1), -t[:-1, None], t[:-1] + 1, terminated,
        np.array([number], np.float32) if goal else None,
    )  # fmt: skip


def stored(*lengths: int, terminated: bool = False, goal: bool = False) -> TransitionStore:
    store = TransitionStore(2, 1, int(goal))
    store.extend([episode(k, n, terminated, goal) for k, n in enumerate(lengths)])
    return store


def lists(batch: Batch) -> dict[str, list]:
    return {name: value.squeeze(-1).tolist() for name, value in batch._asdict().items()}


def test_rows_of_a_store_by_hand() -> None:
    store = stored(2, 1)
    assert (len(store), store.rows, store.episodes) == (3, 5, 2)
    assert store.observation[:, 0].tolist() == [0, 1, 2, 100, 101]
    assert store.reward.tolist() == [1, 2, 0, 1, 0]
    assert store.last.tolist() == [2, 4]
    assert store.episode_of(np.arange(5)).tolist() == [0, 0, 0, 1, 1]


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6), steps=st.integers(1, 4), seed=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_row_with_enough_steps_ahead_is_drawn_and_no_other(lengths: list[int], steps: int, seed: int) -> None:
    store = stored(*lengths)
    firsts = [0, *(store.last[:-1] + 1)]
    allowed = {first + t for first, n in zip(firsts, lengths, strict=True) for t in range(n - steps + 1)}
    if not allowed:
        with pytest.raises(RunError, match=f"the longest has {max(lengths)}"):
            store.draw(1, np.random.default_rng(seed), steps)
        return
    drawn = store.draw(60 * len(allowed), np.random.default_rng(seed), steps)
    assert set(drawn.tolist()) == allowed


def test_rows_are_drawn_by_the_weights_of_their_episodes() -> None:
    """Two steps of weight 3, four of weight 1, three that are never drawn, and one of weight 10."""
    store = stored(2, 4, 3, 1)
    none = [0] * 5
    for steps, weighs in ((1, [3, 3, 0, 1, 1, 1, 1, *none, 10, 0]), (2, [3, 0, 0, 1, 1, 1, 0, *none, 0, 0])):
        drawn = store.draw(40_000, np.random.default_rng(0), steps, np.array([3.0, 1, 0, 10]))
        found = np.bincount(drawn, minlength=store.rows) / len(drawn)
        np.testing.assert_allclose(found, np.array(weighs) / sum(weighs), atol=0.01)


def test_rows_are_drawn_uniformly() -> None:
    drawn = stored(1, 3).draw(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(drawn, minlength=6) / 40_000, [0.25, 0, 0.25, 0.25, 0.25, 0], atol=0.01)


def test_appending_one_by_one_is_appending_at_once_and_the_arrays_hold_everything() -> None:
    parts = [episode(k, n, k % 2 == 0, True) for k, n in enumerate((3, 1, 7, 2, 40))]
    at_once, later = TransitionStore.of(parts), TransitionStore(2, 1, 1)
    for part in parts:
        later.extend([part])
        later.returns(0.9)  # must not be cached beyond the next episode
    for store in (later, TransitionStore.from_arrays(at_once.arrays())):
        for name, array in at_once.arrays().items():
            np.testing.assert_array_equal(array, store.arrays()[name], err_msg=name)
        np.testing.assert_array_equal(store.returns(0.9), at_once.returns(0.9))
    copy = TransitionStore.from_arrays(at_once.arrays())
    copy.extend([episode(5, 2, False, True)])
    assert copy.rows == at_once.rows + 3 and len(at_once._observation) == at_once.rows


def test_episodes_of_other_sizes_are_refused() -> None:
    for store in (TransitionStore(3, 1), TransitionStore(2, 1, 1)):
        with pytest.raises(ValueError, match="sizes"):
            store.extend([episode(0, 2, False)])


def test_n_steps_stop_at_the_end_which_has_a_value_only_if_truncated() -> None:
    data = NStep(steps=3, discount=0.5)
    rows, rng = np.arange(4), np.random.default_rng(0)
    cut, over = (lists(data(stored(4, 2, terminated=t), SPEC, rows, rng)) for t in (False, True))
    assert cut["reward_B"] == over["reward_B"] == [1 + 1 + 0.75, 2 + 1.5 + 1, 3 + 2, 4]
    assert cut["discount_B"] == [0.125, 0.125, 0.25, 0.5]
    assert over["discount_B"] == [0.125, 0, 0, 0]
    assert [s[0] for s in cut["next_state_BS"]] == [3, 4, 4, 4]
    scaled = lists(NStep(steps=2, discount=0.5, reward_scale=10, reward_shift=-1)(stored(4), SPEC, rows, rng))
    assert scaled["reward_B"] == [9 + 0.5 * 19, 19 + 0.5 * 29, 29 + 0.5 * 39, 39]


def test_after_a_truncation_returns_repeat_the_least_reward_of_the_episode_where_it_is_a_cost() -> None:
    np.testing.assert_allclose(stored(3, terminated=True).returns(0.5), [1 + 1 + 0.75, 2 + 1.5, 3, 0])
    tail = -3 / (1 - 0.5)
    np.testing.assert_allclose(stored(3).returns(0.5, shift=-4.0)[:3], [-3 - 4 / 2, -2 - 4 / 2, -1 + tail / 2])
    np.testing.assert_allclose(stored(3).returns(0.5), [1 + 1 + 0.75, 2 + 1.5, 3, 0], err_msg="it may end then")
    failed = ControlEpisode(np.zeros((6, 2)), np.zeros((5, 1)), np.zeros(5), False)
    store = TransitionStore.of([failed])
    np.testing.assert_allclose(store.returns(0.99, shift=-1.0)[:5], -100, rtol=1e-5)
    data = NStep(discount=0.99, reward_shift=-1.0)
    batch = data(store, SPEC, np.arange(5), np.random.default_rng(0), data.returns(store))
    np.testing.assert_allclose(batch.return_B, -100, rtol=1e-5)


def test_lambda_returns_by_hand() -> None:
    """Rewards 1, 2, 3; values 10, 20, 30 of the states and 40 of the last one, which counts if nothing ended there."""
    value = np.array([10.0, 20, 30, 40])
    for ended, last in ((True, 0), (False, 40)):
        store = stored(3, terminated=ended)
        np.testing.assert_allclose(
            store.lambda_returns(value, 0.5, 0.0), [1 + 10, 2 + 15, 3 + last / 2, last], err_msg="one step"
        )
        third = 3 + last / 2
        second = 2 + 0.5 * (0.25 * 30 + 0.75 * third)
        first = 1 + 0.5 * (0.25 * 20 + 0.75 * second)
        np.testing.assert_allclose(store.lambda_returns(value, 0.5, 0.75)[:3], [first, second, third], rtol=1e-6)
        whole = 1 + 0.5 * (2 + 0.5 * third)
        assert store.lambda_returns(value, 0.5, 1.0)[0] == pytest.approx(whole)
    two = stored(3, 2, terminated=True)
    both = two.lambda_returns(np.zeros(two.rows), 0.5, 1.0, scale=2.0, shift=-1.0)
    np.testing.assert_allclose(both, [1 + 1.5 + 1.25, 3 + 2.5, 5, 0, 1 + 1.5, 3, 0])


class GoalRows(Goals):
    """Goals in given rows."""

    at: tuple[int, ...] = ()

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.array(self.at)


def test_goal_transitions_of_sharsa_by_hand() -> None:
    """Rows 0 to 6 of an episode of six steps; n = 3."""
    rows, goals = (0, 0, 0, 0, 4, 4, 4, 5), (0, 2, 3, 6, 6, 3, 5, 6)
    data = NStep(goals=GoalRows(at=goals), action="subgoal", steps=3, discount=0.5)
    given = np.array(rows)
    got = lists(data(stored(6), SPEC, given, np.random.default_rng(0)))
    #        here  2 on  3 on  far   end   past  1 on  1 on and end
    assert got["reward_B"] == [1, 0.25, 0, 0, 0.25, 0, 0.5, 0.5]
    assert got["discount_B"] == [0, 0, 0.125, 0.125, 0, 0.25, 0, 0]
    assert [s[0] for s in got["next_state_BS"]] == [0, 2, 3, 3, 6, 6, 5, 6]
    assert got["action_BA"] == [0, 2, 3, 3, 6, 6, 5, 6]
    assert [s[2] for s in got["state_BS"]] == [s[2] for s in got["next_state_BS"]] == [float(g) for g in goals]
    released = data.replace(end_is_success=True)
    got = lists(released(stored(6), SPEC, given, np.random.default_rng(0)))
    assert got["discount_B"] == [0, 0, 0.125, 0.125, 0, 0, 0, 0]
    assert got["reward_B"] == [1, 0.25, 0, 0, 0.25, 0.25, 0.5, 0.5]


def test_goals_are_drawn_in_their_shares() -> None:
    store, rng = stored(9, 9), np.random.default_rng(0)
    rows = np.full(20_000, 2)
    goals = Relabelled(current=0.2, future=0.5).rows(store, rows, rng)
    random = 0.3 / 18
    expected = [random] * 20
    expected[2] += 0.2
    for future in range(3, 10):
        expected[future] += 0.5 / 7
    expected[9], expected[19] = 0.5 / 7, 0.0  # the last rows are never drawn at random
    np.testing.assert_allclose(np.bincount(goals, minlength=20) / 20_000, expected, atol=0.01)
    near = Relabelled(geometric=0.5).rows(store, rows, rng)
    expected = [0, 0, 0, *(0.5**k for k in range(1, 7)), 0.5**6]
    np.testing.assert_allclose(np.bincount(near, minlength=10) / 20_000, expected, atol=0.01)
    assert SubgoalAhead(steps=4).rows(store, np.array([0, 7, 12, 18]), rng).tolist() == [4, 9, 16, 19]


def test_chunks_are_complete_and_given_goals_are_those_of_the_episodes() -> None:
    store = stored(3, 2, goal=True)
    chunks = NStep(goals=Given(), action="chunk", steps=2, discount=0.5)
    assert chunks.sizes(SPEC) == (3, 2) and chunks.steps_ahead == 2
    rows = np.unique(store.draw(100, np.random.default_rng(0), chunks.steps_ahead))
    batch = chunks(store, SPEC, rows, np.random.default_rng(0))
    assert rows.tolist() == [0, 1, 4]
    assert batch.action_BA.tolist() == [[0, -1], [-1, -2], [0, -1]]
    assert batch.state_BS[:, 2].tolist() == [0, 0, 1]
    assert batch.reward_B.tolist() == [2, 3.5, 2]


def test_given_goals_need_data_with_goals() -> None:
    with pytest.raises(ConfigError, match="have none"):
        NStep(goals=Given())(stored(3), SPEC, np.array([0]), np.random.default_rng(0))


CHAIN = 5
"""States 0 to 4; action 1 moves on, action 0 stays; the step from 3 to 4 earns 1, and 4 is terminal."""


def walks(terminal: bool) -> list[ControlEpisode]:
    """All walks of at most four steps from every state: in each state both actions are taken equally often."""
    episodes = []
    for start, actions in itertools.product(range(CHAIN - 1), itertools.product((0, 1), repeat=4)):
        states, taken = [start], []
        for a in actions:
            if states[-1] == CHAIN - 1:
                break
            taken.append(a)
            states.append(states[-1] + a)
        earned = [float(b == CHAIN - 1) for b in states[1:]]
        ended = terminal and states[-1] == CHAIN - 1
        eye = np.eye(CHAIN, dtype=np.float32)
        episodes.append(ControlEpisode(eye[states], np.array(taken)[:, None], np.array(earned), ended))
    return episodes


def solved(batch: Batch, by_action: bool) -> np.ndarray:
    """The fixed point of the targets of a batch: the mean target of each state (and action) is its value."""
    here, after = batch.state_BS.argmax(1).numpy(), batch.next_state_BS.argmax(1).numpy()
    action = batch.action_BA[:, 0].numpy().astype(int)
    reward, discount = batch.reward_B.double().numpy(), batch.discount_B.double().numpy()
    n = 2 * CHAIN if by_action else CHAIN
    index = 2 * here + action if by_action else here
    matrix, right = np.eye(n), np.zeros(n)
    for i in range(n):
        of = index == i
        if of.any():
            right[i] = reward[of].mean()
            for j, d in zip(after[of], discount[of], strict=True):
                # SARSA: what follows is worth the mean of what the data does there
                for target in (2 * j, 2 * j + 1) if by_action else (j,):
                    matrix[i, target] -= d / of.sum() / (2 if by_action else 1)
    return np.linalg.solve(matrix, right)


def chain_values(gamma: float, after: float) -> np.ndarray:
    """V of acting at random; `after` is the value of the last state."""
    values = np.zeros(CHAIN)
    values[-1] = after
    for s in reversed(range(CHAIN - 1)):
        earned = float(s == CHAIN - 2)
        values[s] = 0.5 * (earned + gamma * values[s + 1]) / (1 - 0.5 * gamma)
    return values


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_values_of_a_chain_are_exact_for_any_n_because_truncation_bootstraps(steps: int) -> None:
    gamma = 0.9
    store = TransitionStore.of(walks(terminal=True))
    spec = Spec(observation=CHAIN, action=1, goal=())
    rows = np.setdiff1d(np.arange(store.rows), store.last)
    batch = NStep(steps=steps, discount=gamma)(store, spec, rows, np.random.default_rng(0))
    expected = chain_values(gamma, 0.0)
    if steps == 1:
        np.testing.assert_allclose(solved(batch, by_action=False), expected, atol=1e-6)
        q = solved(batch, by_action=True).reshape(CHAIN, 2)
        np.testing.assert_allclose(q[:-1, 0], gamma * expected[:-1], atol=1e-6)
        np.testing.assert_allclose(q[:-1, 1], np.eye(CHAIN - 1)[-1] + gamma * expected[1:], atol=1e-6)
    # from the true values, no target moves: from every (state, action) the mean target is its value
    values = expected[batch.next_state_BS.argmax(1).numpy()]
    targets = batch.reward_B.numpy() + batch.discount_B.numpy() * values
    here, action = batch.state_BS.argmax(1).numpy(), batch.action_BA[:, 0].numpy()
    for s, a in itertools.product(range(CHAIN - 1), (0, 1)):
        true = float(s == CHAIN - 2 and a == 1) + gamma * expected[s + a]
        assert targets[(here == s) & (action == a)].mean() == pytest.approx(true, abs=1e-6)


def test_targets_of_a_chain_without_a_terminal_state_bootstrap_everywhere() -> None:
    """The same walks without a terminal state: wherever a walk was truncated, a value follows."""
    gamma, store = 0.9, TransitionStore.of(walks(terminal=False))
    rows = np.setdiff1d(np.arange(store.rows), store.last)
    spec = Spec(observation=CHAIN, action=1, goal=())
    batch = NStep(discount=gamma)(store, spec, rows, np.random.default_rng(0))
    assert (batch.discount_B.numpy() == np.float32(gamma)).all()
    after = 7.0
    values = chain_values(gamma, after)
    targets = batch.reward_B.numpy() + batch.discount_B.numpy() * values[batch.next_state_BS.argmax(1).numpy()]
    into_the_end = (batch.next_state_BS.argmax(1) == CHAIN - 1).numpy()
    np.testing.assert_allclose(targets[into_the_end], 1 + gamma * after, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")  # authors and code that a local data set does not name
def test_minari_returns_the_episodes_that_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    for walk in ("reach", "navigate"):
        tasks = PointMaze.model_validate({"maze": "umaze", "walks": walk, "episodes": 3, "length": 40})
        episodes = tasks.dataset(0)
        assert {e.terminated for e in episodes} == ({True, False} if walk == "reach" else {False})
        minari_files.write(f"local/{walk}-v0", episodes)
        for a, b in zip(episodes, minari_files.read(f"local/{walk}-v0"), strict=True):
            assert a.terminated == b.terminated and (a.goal is None) == (b.goal is None)
            for name in ("observation", "action", "reward", "goal"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    with pytest.raises(RunError, match="already exists"):
        minari_files.write("local/reach-v0", episodes)
    with pytest.raises(RunError, match="no data set"):
        minari_files.read("local/none-v0")
