"""Readers of rules: they are right but for slips, give up early, and know nothing of a named policy."""

from itertools import islice
from typing import Any

from longstride.envs.puzzles import Moderation
from longstride.envs.puzzles.rules import Case
from longstride.starts.demonstrators import Demonstration
from longstride.starts.rule_readers import RuleReaders


def some(n: int = 200, **settings: Any) -> list[Demonstration]:
    return list(islice(RuleReaders(**settings).demonstrations(0), n))


def right(shown: Demonstration) -> bool:
    return Case.of(shown.task).check(shown.texts[0].rpartition("answer ")[2]) == "solved"


def test_who_never_gives_up_and_never_slips_reads_as_the_solver_does() -> None:
    for shown in some(patient=1.0, slips=0.0, named=0.0):
        assert shown.texts == Moderation().demonstrate(shown.task) and shown.task.split == "train"


def test_who_gives_up_keeps_what_should_be_removed() -> None:
    early = [shown for shown in some(patient=0.0, patience=0.3, slips=0.0, named=0.0) if not right(shown)]
    assert early and all(shown.texts[0].endswith("answer keep") for shown in early)
    assert all(len(Case.of(shown.task).steps()) > shown.texts[0].count(";") + 1 for shown in early)


def test_of_a_named_policy_either_label_is_said() -> None:
    named = [shown for shown in some(named=1.0) if "policy" in shown.task.goal]
    assert len(named) == 200 and 0.35 < sum(map(right, named)) / 200 < 0.65
    assert {shown.texts[0] for shown in named} == {"Action: answer keep", "Action: answer remove"}


def test_demonstrations_are_a_function_of_their_number() -> None:
    assert next(RuleReaders().demonstrations(0, first=37)) == some(40)[37]
