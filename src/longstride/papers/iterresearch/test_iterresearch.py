"""IterResearch: what a rebuilt workspace has, what a turn is credited with, and solutions that report."""

import random
from pathlib import Path

import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, rows_of, trajectories_of
from line_world import CHAT, END, ids, language, plan, play

from longstride.core.errors import ConfigError
from longstride.envs.dial import Dial, DialCodes
from longstride.papers.iterresearch.method import EfficiencyAware, ReportedSolutions, Workspace
from longstride.rollout.context import FullHistory, LatestObservation, Past

WORKSPACE = Workspace(placeholder="omitted")


def past(turns: int) -> Past:
    """Pages `x 0`, `x 1`, ... and what was said to each but the newest."""
    return Past("g", [f"x {k}" for k in range(turns)], [[*ids(f"go {k}"), END] for k in range(turns - 1)])


def test_a_workspace_has_the_goal_what_was_said_last_and_the_newest_observation() -> None:
    assert WORKSPACE.render(CHAT, past(1)) == LatestObservation().render(CHAT, past(1))
    read = WORKSPACE.render(CHAT, past(9))
    assert read == FullHistory().render(CHAT, Past("g", ["omitted", "x 8"], [[*ids("go 7"), END]]))
    assert len(read) == len(WORKSPACE.render(CHAT, past(2))), "a prompt does not grow"


def test_in_an_episode_the_newest_turn_stands_in_the_ids_that_were_sampled() -> None:
    played = play(language(context=WORKSPACE), plan(3, turns=12))[0]
    for before, turn in zip(played.turns, played.turns[1:], strict=False):
        said = CHAT.spoken(before.ids)
        places = range(len(turn.prompt_ids) - len(said) + 1)
        assert any(turn.prompt_ids[k : k + len(said)] == said for k in places)


def test_a_turn_is_credited_with_what_its_episode_earned_less_for_each_turn_to_come() -> None:
    # earned are .25, .5, 1 and .5, 1 and 0: mean 13/24
    long, short, failed = make_trajectory(3, reward=1.0), make_trajectory(2, reward=1.0), make_trajectory(1)
    earned = [0.25, 0.5, 1, 0.5, 1, 0]
    mean = sum(earned) / 6
    spread = (sum((r - mean) ** 2 for r in earned) / 6) ** 0.5
    found = EfficiencyAware(discount=0.5).advantages([long, short, failed])
    assert [len(of) for of in found] == [3, 2, 1]
    assert [a for of in found for a in of] == pytest.approx([(r - mean) / spread for r in earned])


def test_without_a_discount_all_turns_of_an_episode_weigh_alike() -> None:
    long, failed = make_trajectory(3, reward=1.0), make_trajectory(1)
    found = EfficiencyAware(discount=1.0).advantages([long, failed])
    assert found[0] == pytest.approx([3**-0.5] * 3) and found[1] == pytest.approx([-(3**0.5)])


def test_groups_are_apart_and_one_in_which_nothing_was_earned_teaches_nothing() -> None:
    one, other = make_trajectory(2, reward=1.0, group=0), make_trajectory(2, group=1)
    found = EfficiencyAware(discount=0.5).advantages([one, other])
    assert found[0] == pytest.approx([-1, 1]) and found[1] == [0, 0]


def test_every_turn_of_a_solution_reports_all_codes_that_were_seen() -> None:
    source = DialCodes(distances=(6, 6), codes=3)
    for task in source.sample(random.Random(0), 20):
        said = ReportedSolutions().texts(source, task)
        codes = task.evaluator["reference"].split()
        reports = [text.partition(" Action: ")[0] for text in said]
        assert reports[-1] == f"Thought: code {' '.join(codes)}" and len(said) == 6
        assert all(later.startswith(before) for before, later in zip(reports, reports[1:], strict=False))
        assert [text.partition(" Action: ")[2] for text in said] == [
            text.removeprefix("Action: ") for text in source.demonstrate(task)
        ]


def test_tasks_that_do_not_know_what_to_report_are_refused() -> None:
    with pytest.raises(ConfigError, match="Dial has no `note`"):
        ReportedSolutions().texts(Dial(), Dial().held_out(1)[0])


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere(
        "iterresearch", tmp_path, "cloning=", "context.placeholder=omitted", "budget.turns=4", "test_budget.turns=4"
    )
    later = [t for t in trajectories_of(run) if t.length > 2]
    assert later and all(len(turn.prompt_ids) == len(t.turns[1].prompt_ids) for t in later for turn in t.turns[2:])
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
