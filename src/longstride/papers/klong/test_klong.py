"""KLong: where pieces begin, what every piece keeps, and that within a piece prompts go on."""

import pytest
from line_world import CHAT, END, ids, language, plan, play

from longstride.papers.klong.method import OverlappingPieces
from longstride.rollout.context import FullHistory, Past


def past(turns: int) -> Past:
    """Pages `x 0`, `x 1`, ... and what was said to each but the newest."""
    return Past("g", [f"x {k}" for k in range(turns)], [[*ids(f"go {k}"), END] for k in range(turns - 1)])


def turns_read(prompt: list[int]) -> list[int]:
    """Numbers of the pages in a prompt."""
    numbers = {ids(str(k))[0]: k for k in range(40)}
    x = ids("x")[0]
    return [numbers[b] for a, b in zip(prompt, prompt[1:], strict=False) if a == x]


@pytest.mark.parametrize(
    ("turn", "begins"),
    # 10 tokens before the first page, pages of 10, 5 for what is said: goal and first turn take 25 of 60, so a piece has
    # room for a turn and the newest page besides
    [(1, 1), (2, 1), (3, 2), (4, 3), (9, 8)],
)
def test_a_piece_begins_where_the_prompt_would_be_too_long(turn: int, begins: int) -> None:
    sizes = [(10, 5)] * turn + [(10, 0)]
    policy = OverlappingPieces(most=60, overlap=1)
    assert policy.begins(sizes, head=10) == begins


def test_a_piece_grows_before_another_one_begins() -> None:
    policy = OverlappingPieces(most=100, overlap=1)
    found = [policy.begins([(10, 5)] * turn + [(10, 0)], head=10) for turn in range(1, 13)]
    assert found == [1, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9]


def test_every_piece_keeps_the_beginning_and_what_it_takes_over() -> None:
    whole = len(FullHistory().render(CHAT, past(6)))
    policy = OverlappingPieces(most=whole, overlap=2)
    assert policy.render(CHAT, past(6)) == FullHistory().render(CHAT, past(6))
    prompt = policy.render(CHAT, past(7))
    assert turns_read(prompt) == [0, 4, 5, 6] and len(prompt) <= whole
    assert turns_read(policy.replace(early=0).render(CHAT, past(7))) == [4, 5, 6]


def test_within_a_piece_a_prompt_continues_the_one_before_it() -> None:
    whole = len(FullHistory().render(CHAT, past(6)))
    policy, forks = OverlappingPieces(most=whole, overlap=2), 0
    for turns in range(1, 30):
        before, after = (policy.render(CHAT, past(n)) for n in (turns, turns + 1))
        spoken = [*before, *ids(f"go {turns - 1}"), END]
        forks += after[: len(spoken)] != spoken
        assert len(after) <= whole
    assert 0 < forks < 12


def test_in_an_episode_no_prompt_is_longer_than_it_may_be() -> None:
    policy = OverlappingPieces(most=20, overlap=1)
    trajectory = play(language(context=policy), plan(3, turns=12))[0]
    full = play(language(context=FullHistory()), plan(3, turns=12))[0]
    assert max(len(t.prompt_ids) for t in trajectory.turns) <= 20 < max(len(t.prompt_ids) for t in full.turns)
