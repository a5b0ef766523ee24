"""TTI in numbers: what the page says of a token's use is what is kept."""

import json

from guides import DOCS

WAYS = {
    "nothing more: 8 turns": ("trained",),
    "turns: 12, 16, 24, 32": tuple(f"trained@direct_{n}_turns" for n in (12, 16, 24, 32)),
    "a majority of 2, 4, 8 attempts": tuple(f"trained@best_of_{n}_by_majority" for n in (2, 4, 8)),
    "checks of the answer: 2, 3": tuple(f"trained@check_again_{n}" for n in (2, 3)),
    "thoughts that go on: once, twice": tuple(f"trained@think_on_{n}" for n in (1, 2)),
}


def test_what_tokens_bring_is_what_is_kept() -> None:
    page = (DOCS / "tti.md").read_text(encoding="utf-8")
    kept = json.loads((DOCS.parent / "src/longstride/papers/tti/results/tokens.json").read_text(encoding="utf-8"))
    for name, sides in WAYS.items():
        of = [[kept["arms"][side]["measures"][what]["value"] for what in ("success", "spent_tokens")] for side in sides]
        assert f"| {name} | {', '.join(f'{success:.2f} with {tokens:.0f}' for success, tokens in of)} |" in page
    (effect,) = kept["effects"]
    ahead = "turns are {mean:.3f} ahead of a majority ({lo:.3f} to {hi:.3f}, at a margin of {gap:g})"
    assert ahead.format(**effect) in page


def test_from_which_horizon_turns_are_ahead_is_what_is_kept() -> None:
    page = " ".join((DOCS / "tti.md").read_text(encoding="utf-8").split())
    kept = json.loads((DOCS.parent / "src/longstride/papers/tti/results/spent.json").read_text(encoding="utf-8"))
    (effect,), (control,) = kept["effects"], kept["control_effects"]
    assert kept["verdict"] == "reproduced" and "void" not in control
    assert "{mean:.3f} ahead ({lo:.3f} to {hi:.3f}, at a margin of {gap:g})".format(**effect) in page
    assert "{mean:.3f} ({lo:.3f} to {hi:.3f})".format(**control) in page
    start, turns, majority = (
        {what: kept["arms"][f"from_24{side}"]["measures"][what]["value"] for what in ("success", "spent_tokens")}
        for side in ("", "@turns", "@samples")
    )
    assert f"turns take {turns['spent_tokens'] - start['spent_tokens']:.0f} tokens at most" in page
    assert "{success:.2f} with {spent_tokens:.0f} tokens".format(**majority) in page
    assert "turns come to {success:.2f} with {spent_tokens:.0f}".format(**turns) in page
