"""LaMer: what an episode is paid for, by hand, and what the next one reads."""

from pathlib import Path

import pytest
from helpers import make_trajectory, trajectories_of

from longstride.core.trajectory import Trajectory, by_trial
from longstride.methods import GroupRelative
from longstride.papers.lamer.recipe import RECIPE


def trials() -> list[Trajectory]:
    """Two trials of one task: the first succeeds in its second episode, the other never does."""
    rewards = [(0.0, 1.0), (0.0, 0.0)]
    found = []
    for trial, of_trial in enumerate(rewards):
        for place, reward in enumerate(of_trial):
            t = make_trajectory(reward=reward, group=place, ordinal=2 * trial + place)
            t.after = (2 * trial,) * place
            found.append(t)
    return found


def test_an_episode_is_paid_for_what_came_after_it_and_compared_at_its_place() -> None:
    credit = RECIPE.credit.replace(credit=GroupRelative(normalize="none"))
    paid = [turn for episode in credit.advantages(trials()) for turn in episode]
    # first places return 0.6 x 1 and 0, second ones 1 and 0; each is compared with the mean of its place
    assert paid == pytest.approx([0.3, 0.5, -0.3, -0.5])


@pytest.mark.filterwarnings("error:the model's vocabulary lacks")
def test_a_later_episode_reads_what_the_earlier_ones_said_and_their_outcome(tmp_path: Path) -> None:
    small = {"iterations": 1, "episodes_per_iteration": 24, "evaluation": {"tasks": 2}}
    RECIPE.replace(**small).train(tmp_path / "run")
    trained = [t for t in trajectories_of(tmp_path / "run") if t.turns]
    later = [trial for trial in by_trial(trained) if len(trial) > 1]
    assert later, "no trial has a second episode"
    for trial in later:
        for before, after in zip(trial, trial[1:], strict=False):
            assert before.reward == 0, "a success ends the trial"
            said = before.turns[-1].prompt_ids + before.turns[-1].sampled_ids
            read = after.turns[0].prompt_ids
            assert read[: len(said)] == said and len(read) > len(said), "what was said, and then the outcome"
