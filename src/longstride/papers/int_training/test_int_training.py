"""InT: where a search finds the first error, what is cloned of it, and a model and tasks of one's own."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from elsewhere import train_elsewhere
from helpers import (
    cut_thought,
    make_planner,
    make_trajectory,
    make_turn,
    played,
    rows_of,
    run_stages,
    trajectories_of,
    word_chat,
)

from longstride.core.budget import Budget
from longstride.core.errors import ConfigError, JudgeFailure
from longstride.core.trajectory import Trajectory, Usage
from longstride.envs.judgements import lines_of
from longstride.envs.puzzles import ModularChain
from longstride.envs.questions import Question
from longstride.papers.int_training.method import (
    INTERVENTION,
    PREFIX,
    PROBE,
    Interventions,
    JudgedInterventions,
    Spliced,
)
from longstride.papers.int_training.recipe import CLAIM
from longstride.rewards import Judge
from longstride.rewards.scorers import Answered, NoVerdict, Reply
from longstride.rollout import Plan
from longstride.rollout.episode import set_failure

CHAT = word_chat("a b c d e x ; end")
RIGHT = CHAT.encode("a ; b ; c ; d ; e end")


class Says(Judge):
    """Names a line, whatever it is shown; with a negative number it says nothing that could be read."""

    line: int

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return [self._reply(q) for q in questions]

    def _reply(self, q: Question) -> Answered:
        assert q.text == "Which line of the answer is the first wrong one?" and q.about["task"]
        if self.line < 0:
            return NoVerdict("it said nothing", 3, 20)
        assert q.options == ("none", *map(str, range(1, lines_of(q.about["answer"]) + 1)))
        return Reply(tuple(float(k == self.line) for k in range(len(q.options))), tokens=3, read=20)


class Lines(Judge):
    """Finds the second line wrong where there is one behind a mark."""

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return [Reply(tuple(float(k == 2) for k in range(len(q.options))), tokens=3, read=20) for q in questions]


class Absent(Judge):
    """Is not there."""

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return [JudgeFailure("nobody there") for _ in questions]


HALVED = Interventions(iterations=1, continuations=2)


def search(
    said: str,
    solves: Sequence[bool],
    iteration: int = 1,
    given: int = 0,
    sampler: Interventions = HALVED,
) -> tuple[list[list[Plan]], list[Trajectory]]:
    """Plans by stage and episodes of one group whose first member says `said`, which begins with so many ids that were
    `given`, and fails, and whose second one solves the task where `solves[0]`; from a beginning of n right steps one of two continuations solves it where `solves[n]`."""

    def play(plan: Plan) -> Trajectory:
        begun = list(plan.prefix)
        if plan.role != PROBE:
            solved = plan.ordinal == 1 and solves[0]
            if solved:
                return played(plan, RIGHT, 1.0)
            failed = cut_thought(plan, CHAT.encode(said), given)
            failed.turns[0].text = said
            return failed
        right = begun == RIGHT[: len(begun)] and solves[(len(begun) + 1) // 2]
        solved = right and plan.ordinal % 2 == 1
        rest = RIGHT[len(begun) :] if solved else CHAT.encode("; x end")
        return played(plan, rest, float(solved))

    planner = make_planner(
        ModularChain(), iteration, episodes=2, size=2, chat=CHAT, budget=Budget(turns=1, turn_tokens=20)
    )
    return run_stages(sampler.plan(planner), play)


def noted(episodes: Sequence[Trajectory]) -> dict[str, list[str]]:
    """What is cloned, as text, by the note that says so."""
    return {
        note: [CHAT.decode(t.turns[0].sampled_ids[: t.evidence[note]]) for t in episodes if note in t.evidence]
        for note in (PREFIX, INTERVENTION)
    }


def test_the_first_error_is_found_by_halving_and_one_step_takes_its_place() -> None:
    stages, episodes = search("a ; b ; x ; d ; e end", [False, True, True, True, True])
    # from behind two steps it goes on to a success, from behind the third it does not
    assert [len(stage[0].prefix) for stage in stages] == [0, 3, 5] and {p.role for p in stages[1]} == {PROBE}
    assert {p.env_seed for p in stages[1] + stages[2]} == {stages[0][0].seed}
    assert noted(episodes) == {PREFIX: ["a ; b"], INTERVENTION: ["; c"]}
    samples = {s.episode: s for s in Spliced()(episodes)}
    assert len(samples) == 2
    prefix, step = sorted(samples.values(), key=lambda s: s.episode)
    assert (prefix.advantages, step.advantages) == ([1.0] * 3 + [0.0] * 7, [1.0] * 2 + [0.0] * 5)
    assert step.prompt_ids[-3:] == RIGHT[:3]  # what stood before is read
    (alone,) = Spliced(prefix=False)(episodes)
    assert alone.episode == step.episode


def test_of_a_failed_answer_whose_thought_its_budget_cut_what_was_sampled_is_cloned() -> None:
    _, episodes = search("a ; b ; x ; d ; e end", [False, True, True, True, True], given=2)
    assert noted(episodes) == {PREFIX: ["b"], INTERVENTION: ["; c"]}
    assert {len(s.advantages) for s in Spliced()(episodes)} == {10 - 2, 7}


def test_an_error_in_the_first_step_is_mended_by_a_sibling_that_succeeded() -> None:
    _, episodes = search("x ; b ; c ; d ; e end", [True, True, True, True, True])
    assert noted(episodes) == {PREFIX: [""], INTERVENTION: ["a"]}
    (step,) = Spliced()(episodes)
    assert step.episode == 1


def test_an_answer_from_no_beginning_of_which_a_success_comes_is_left_alone() -> None:
    _, episodes = search("x ; b ; c ; d ; e end", [False] * 5)
    assert noted(episodes) == {PREFIX: [], INTERVENTION: []} and Spliced()(episodes) == []


def test_the_last_step_has_the_result_in_it_and_is_no_intervention() -> None:
    _, episodes = search("a ; b ; c ; d ; x end", [False, True, True, True, True])
    assert noted(episodes) == {PREFIX: [], INTERVENTION: []}


def test_an_answer_that_infrastructure_ended_has_no_error_to_be_found() -> None:
    def play(plan: Plan) -> Trajectory:
        t = played(plan, CHAT.encode("a ; b ; x end"), 0.0)
        set_failure(t, "no environment", 1)
        return t

    planner = make_planner(ModularChain(), episodes=2, size=2, chat=CHAT, budget=Budget(turns=1, turn_tokens=20))
    stages, _ = run_stages(Interventions().plan(planner), play)
    assert len(stages) == 1


def test_after_the_first_iterations_groups_alone_are_played() -> None:
    stages, _ = search("a ; b ; x ; d ; e end", [False, True, True, True, True], iteration=2)
    assert len(stages) == 1


def test_episodes_of_several_turns_are_refused() -> None:
    planner = make_planner(ModularChain(), chat=CHAT, budget=Budget(turns=2))
    with pytest.raises(ConfigError, match="interventions looks for an error in an only turn, and episodes may take 2"):
        next(Interventions().plan(planner))


def test_what_was_played_without_a_note_weighs_nothing() -> None:
    assert Spliced()([make_trajectory([make_turn([1, 2])], 1.0)]) == []


def judged(judge: Judge, solves: Sequence[bool]) -> tuple[list[list[Plan]], list[Trajectory]]:
    """The same search with a judge, for an answer whose third step is wrong."""
    return search("a ; b ; x ; d ; e end", solves, sampler=JudgedInterventions(continuations=2, judge=judge))


def test_a_judge_names_the_first_error_and_what_succeeds_from_before_it_takes_its_place() -> None:
    stages, episodes = judged(Says(line=3), [False, True, True, True, True])
    assert [len(stage[0].prefix) for stage in stages] == [0, 3]  # one place is probed: the one that it named
    assert noted(episodes) == {PREFIX: ["a ; b"], INTERVENTION: ["; c"]}
    assert [t.judge_usage for t in episodes if t.judge_usage] == [Usage(1, read=20, sampled=3)]


@pytest.mark.parametrize(("line", "begun"), [(1, 0), (2, 1), (4, 5), (5, 7), (6, 7)])
def test_answers_go_on_from_before_whatever_line_is_named(line: int, begun: int) -> None:
    stages, episodes = judged(Says(line=line), [False] * 5)
    assert [len(stage[0].prefix) for stage in stages] == [0, begun]
    assert noted(episodes) == {PREFIX: [], INTERVENTION: []}  # none of them succeeded


def test_a_first_step_that_a_judge_finds_wrong_is_mended_by_a_sibling_that_succeeded() -> None:
    stages, episodes = judged(Says(line=1), [True] * 5)
    assert len(stages) == 1 and noted(episodes) == {PREFIX: [""], INTERVENTION: ["a"]}


@pytest.mark.parametrize("judge", [Says(line=0), Says(line=-1), Absent()])
def test_an_answer_in_which_no_error_is_named_is_left_alone(judge: Judge) -> None:
    stages, episodes = judged(judge, [True] * 5)
    assert len(stages) == 1 and noted(episodes) == {PREFIX: [], INTERVENTION: []}
    read = [t.judge_usage.read for t in episodes if t.judge_usage]
    assert read == ([] if isinstance(judge, Absent) else [20])  # what was asked for nothing is counted too


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere(  # the first failed answer of the first group is `96 [8] 60`
        "int_training", tmp_path, 'sampler.mark="[8]"', "sampler.iterations=1", "objectives.0.after=1"
    )
    probes = [t for t in trajectories_of(run) if t.role == PROBE]
    assert len(probes) == 4 and {(t.iteration, t.turns[0].given) for t in probes} == {(1, 1)}
    _, second = rows_of(run, "train")
    assert second["grad_norm"] > 0


def test_a_judge_of_ones_own_finds_errors_of_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere(
        "int_training",
        tmp_path,
        f"sampler.type={JudgedInterventions.__module__}:JudgedInterventions",
        f'sampler.judge={{type="{Lines.__module__}:Lines"}}',
        'sampler.mark="[8]"',
        "sampler.iterations=1",
        "objectives.0.after=1",
    )
    first, second = rows_of(run, "train")
    assert first["summary"]["judge_usage"]["sampled"] == 4 * 3 and "judge_usage" not in second["summary"]
    assert {t.turns[0].given for t in trajectories_of(run) if t.role == PROBE} >= {1} and second["grad_norm"] > 0


def test_arms_differ_in_what_comes_before_rl() -> None:
    assert set(CLAIM.changes("rl")) == {"sampler", "credit", "loss", "objectives", "iterations"}
    assert list(CLAIM.changes("no_prefix")) == ["credit.prefix"]
