"""3D scaling: each axis comes to its bound, as computed, and what is spent is counted."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_task, make_trajectory, make_turn, rows_of, run_stages

from longstride.core.budget import Budget
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Iterated, ModularChain, Puzzles
from longstride.papers.scaling_3d.exact import THREE, TWO, Doubtful, Mixed, answers, votes
from longstride.papers.scaling_3d.method import ThreeAxes
from longstride.papers.scaling_3d.recipe import RECIPE as MAIN
from longstride.rollout.episode import Episode, Plan
from longstride.rollout.players import ScriptedPlayer
from longstride.run.evaluation import evaluate_player


def solved(problem: Doubtful, method: Mixed, chance: float) -> float:
    found = method.replace(tasks=20_000).answered(problem, chance, np.random.default_rng(0))
    return float((found == 0).mean())


def test_an_answer_is_that_of_the_first_wrong_step_and_most_thoughts_decide() -> None:
    steps = np.array([[[0, 0], [0, 2], [3, 2], [0, 3]], [[0, 0], [0, 0], [1, 0], [1, 1]]])
    found = answers(steps)
    assert found.tolist() == [[0, 2, 3, 3], [0, 0, 1, 1]]
    assert votes(found, 3).tolist() == [3, 0]


def test_a_longer_thought_comes_to_what_it_is_not_blind_to() -> None:
    # one step; every look redoes a wrong one that is not blind with chance 0.5
    problem, q = Doubtful(length=1, see=0.5, blind=0.4), 0.3
    after_2 = q + (1 - q) * 0.6 * 0.5 * q
    assert solved(problem, Mixed(looks=2, thoughts=1, turns=1), q) == pytest.approx(after_2, abs=0.01)
    bound = q / (q + (1 - q) * 0.4)
    assert solved(problem, Mixed(looks=40, thoughts=1, turns=1), q) == pytest.approx(bound, abs=0.01)


def test_a_turn_sees_afresh_and_doubts_what_is_right() -> None:
    problem, q = Doubtful(length=1, see=0.5, blind=0.4, doubt=0.2), 0.3
    two = q * (0.8 + 0.2 * q) + (1 - q) * 0.6 * 0.5 * q
    assert solved(problem, Mixed(looks=1, thoughts=1, turns=2), q) == pytest.approx(two, abs=0.01)


def test_a_vote_finds_the_likeliest_answer_right_or_not() -> None:
    problem = Doubtful(length=1, wrong=(0.5, 0.3, 0.2))
    many = Mixed(looks=1, thoughts=200, turns=1, tasks=200)
    assert (many.answered(problem, 0.6, np.random.default_rng(0)) == 0).mean() == 1
    assert (many.answered(problem, 0.2, np.random.default_rng(0)) == 1).mean() > 0.95


def test_all_mixes_spend_as_many_looks() -> None:
    assert Mixed(looks=3, thoughts=2, turns=4).looked == 2 * (3 * 4 + 3)
    looked = [Mixed(looks=looks, thoughts=thoughts, turns=turns).looked for looks, thoughts, turns in THREE + TWO]
    assert max(looked) < 1.04 * min(looked)
    assert all(min(mix) > 1 for mix in THREE) and all(sum(n > 1 for n in mix) == 2 for mix in TWO)


ANSWERS = {0: "a", 1: "b", 2: "b", 3: "c", 4: "a", 5: "a"}
"""By the number of an answer: two turns of three."""
NOBODY = ScriptedPlayer(lambda episode: "")


def play(seen: list[Plan]):
    """Plays stages: each answer is a turn of two tokens behind what it reads, which was sampled before."""

    def of(plan: Plan) -> Trajectory:
        number = len(seen)
        seen.append(plan)
        past = [make_turn([], text=turn.text) for turn in plan.history]
        own = make_turn([1, 2], text=f"answer {ANSWERS[number]}")
        return make_trajectory(
            [*past, own], ordinal=plan.ordinal, answer=ANSWERS[number], task=plan.task, budget=plan.budget
        )

    return of


def test_a_vote_says_what_the_next_turn_reads_and_all_tokens_are_counted() -> None:
    seen: list[Plan] = []
    plan = Plan(make_task(horizon=1), 7, 0, Budget(turns=2))
    strategy = ThreeAxes(batch=3, turns=2)
    stages, found = run_stages(strategy.run([plan], NOBODY), play(seen))
    assert [len(stage) for stage in stages] == [3, 3] and stages[0][0].ordinal == 7
    assert len({p.ordinal for stage in stages for p in stage}) == 6
    # two of the first three say b, and all of the second turn read it; their own vote is for a
    assert {tuple(t.text for t in p.history) for p in stages[1]} == {("answer b",)}
    assert [p.budget.turns for stage in stages for p in stage] == [1, 1, 1, 2, 2, 2]
    (episode,) = found
    assert episode.trajectory.answer == "a" and episode.spent_tokens == 12
    assert all(p.task.horizon is None for stage in stages for p in stage)


def test_one_answer_of_one_turn_is_the_episode_of_direct() -> None:
    seen: list[Plan] = []
    plan = Plan(make_task(), 7, 0, Budget(turns=1))
    _, (episode,) = run_stages(ThreeAxes(batch=1, turns=1).run([plan], NOBODY), play(seen))
    assert seen == [plan] and episode.spent_tokens == episode.trajectory.sampled_tokens == 2


def test_mixes_have_names_of_their_own_and_say_what_a_turn_may_take() -> None:
    mixes = [
        ThreeAxes(context=c, batch=b, turns=t, asks=a)
        for c in (None, 8)
        for b in (1, 2)
        for t in (1, 2)
        for a in (True, False)
    ]
    assert len({mix.name for mix in mixes}) == len(mixes)
    assert [ThreeAxes(context=c).budget(Budget(turns=1, turn_tokens=20)).turn_tokens for c in (None, 8, 40)] == [
        20,
        8,
        20,
    ]
    assert ThreeAxes(turns=3).budget(Budget(turns=1)).turns == 3
    # where the environment goes on by itself, nobody asks again
    assert ThreeAxes(turns=3, asks=False).budget(Budget(turns=8)).turns == 3
    with pytest.raises(ConfigError, match="asks for an only turn again"):
        ThreeAxes().budget(Budget(turns=4))


def test_another_model_answers_in_turns_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    mix = '{type="longstride.papers.scaling_3d.method:ThreeAxes", batch=2, turns=2}'
    short = '{type="longstride.papers.scaling_3d.method:ThreeAxes", context=1, batch=2, turns=2}'
    run = train_elsewhere("scaling_3d", tmp_path, f'evaluation.strategies=[{{type="direct"}}, {mix}, {short}]')
    direct, mixed, cut = (row["measures"] for row in rows_of(run, "eval") if row["iteration"] == 2)
    assert 2 * np.mean(direct["spent_tokens"]) < np.mean(mixed["spent_tokens"]) <= 4 * 3
    assert np.mean(mixed["length"]) == 2 and np.mean(cut["spent_tokens"]) == 4


def test_rounds_of_a_puzzle_go_on_from_the_summary_of_what_was_taken() -> None:
    source = Iterated(puzzles=Puzzles(sources=(ModularChain(lengths=(3, 3, 3)),)))
    seen: list[str] = []

    def say(episode: Episode) -> str:
        seen.append(str(episode.observations[-1]))
        return "Thought: 1 + 2 = 3 Action: answer 3"

    recipe = MAIN.replace(tasks=source)
    found = evaluate_player(ScriptedPlayer(say), recipe, source.held_out(1), ThreeAxes(batch=1, turns=2, asks=False))
    first, second = seen
    assert first == "" and second.startswith("now 3 ; ")
    assert found.summary["length"] == 2 and found.trajectories[0].answer == "3"
