"""Posts and policies: labels by hand, steps that come to them, and named policies whose label is fixed."""

import random

import pytest
from pydantic import ValidationError

from longstride.envs.puzzles import Moderation
from longstride.envs.puzzles.rules import Case


def test_a_post_that_has_all_features_of_one_rule_is_removed() -> None:
    case = Case(rules=((12, 7), (3, 9)), post={7: True, 3: False, 12: True, 9: True})
    assert case.goal == "post 7 yes 3 no 12 yes 9 yes ; rules 12 7 , 3 9"
    assert case.demonstration() == ["Thought: 12 yes 7 yes Action: answer remove"]
    kept = Case(rules=((3, 9), (4, 8)), post={9: True, 4: True, 3: False, 8: False})
    assert kept.demonstration() == ["Thought: 3 no ; 4 yes 8 no Action: answer keep"]
    assert kept.check("keep") == "solved" and kept.check("remove") == "the label is keep , not remove"


def test_half_of_all_posts_are_to_be_removed_and_no_length_tells_which() -> None:
    source, rng = Moderation(), random.Random(0)
    cases = [Case.of(task) for task in source.sample(rng, 600)]
    removed = [case for case in cases if case.label == "remove"]
    assert 0.45 < len(removed) / 600 < 0.55
    by_rules = [sum(len(c.rules) == n for c in removed) / sum(len(c.rules) == n for c in cases) for n in (2, 4, 6)]
    assert all(0.4 < share < 0.6 for share in by_rules)


def test_a_named_policy_always_has_the_same_label_and_does_not_say_it() -> None:
    cases = [Case.of(task) for task in Moderation(named=True).sample(random.Random(0), 300)]
    labels = {case.named: case.label for case in cases}
    assert all(labels[case.named] == case.label and not case.steps() for case in cases)
    assert {*labels.values()} == {"keep", "remove"} and " ; policy " in cases[0].goal


def test_a_policy_is_written_or_named_and_has_features_enough() -> None:
    with pytest.raises(ValidationError, match="a policy is either written, as rules, or named"):
        Case(post={1: True})
    with pytest.raises(ValidationError, match="the post does not say whether it has 3"):
        Case(rules=((3,),), post={1: True})
    with pytest.raises(ValidationError, match="36 features are needed for 12 rules, and there are 30"):
        Moderation(rules=(2, 4, 12), features=3)
