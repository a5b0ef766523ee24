"""The page of a horizon card, and what it says in words.

What always holds: as in `report.html`: one file that refers to nothing outside itself, whose content security policy
forbids any request and any script but its own; every text enters escaped or as JSON. A card that was cut short, with a
forecast alone, has a page too.
"""

import string
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from longstride.core.files import write_atomically
from longstride.report.html import PLAY, PLAY_SCRIPTS, STATIC, hash_of
from longstride.report.rows import embed
from longstride.report.tables import table, table_html

Card = Mapping[str, Any]
SHARES = ("0.5", "0.8")
"""Of success, as a card names them."""
KINDS = {
    "turns": ("blue", "circle"),
    "samples": ("orange", "square"),
    "checks": ("green", "triangle"),
    "thoughts": ("purple", "circle"),
}
"""What tokens may go to, with hue and mark."""


def write_card(card: Card, target: Path, play: Mapping[str, Any] | None = None) -> Path:
    """Writes the page of what `run.card.measure_card` found; `play` is what `report.play.carried` says."""
    style = _static("report.css")
    script = "".join(_static(f"{name}.js") for name in ("charts", *PLAY_SCRIPTS))
    page = string.Template(_static("card.html")).substitute(
        title=escape(str(card["policy"])),
        kicker=escape(f"Horizon card, {card['recipe']}"),
        verdict=escape(headline(card)),
        certainty=escape(forecast_in_words(card)),
        tiles=_tiles(card),
        words=table_html(_three_words(card)),
        forecast=_forecast(card),
        spending=_spending(card),
        made=escape(_made(card)),
        play=PLAY,
        style=style,
        script=script,
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        data=embed({"figures": _figures(card), "play": play}),
    )
    write_atomically(target, page)
    return target


def as_text(card: Card) -> str:
    """The card in plain text."""
    parts = [headline(card), forecast_in_words(card), table(_three_words(card)), table(_splits(card))]
    return "\n\n".join(filter(None, parts))


def headline(card: Card) -> str:
    """What the policy reaches, in one sentence."""
    unit, at, came = card["unit"], card["forecast"]["at"], card.get("measured")
    if came is None:
        return f"{_share(card['forecast']['success'])} of {_tasks(card)} within {card['forecast']['budget']:g} {unit}"
    told = f"{_share(came['success'])} of {_tasks(card)} within {at:g} {unit}"
    if not card["distance"]:
        return told
    return f"{told}; 50 % horizon: goal distance {_told(card, 'distance', '0.5')}"


def forecast_in_words(card: Card) -> str:
    """What was predicted of twice the budget, and what came."""
    said, came, unit = card["forecast"], card.get("measured"), card["unit"]
    if not said["under_way"]:
        return f"No episode was cut at {said['budget']:g} {unit}: twice as many change nothing, nothing is predicted."
    interval = f"{said['mean']:.3f} [{said['lo']:.3f}, {said['hi']:.3f}]"
    told = f"Predicted at {said['at']:g} {unit}, from {said['budget']:g}: {interval}"
    if came is None:
        return f"{told}; not measured yet."
    also = ' "No change" lies inside, too.' if came["unchanged"] else ""
    return f"{told}; measured {came['success']:.3f}: {'hit' if came['hit'] else 'miss'}.{also}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _tasks(card: Card) -> str:
    return f"{card['episodes']} held-out tasks"


def _range(card: Card, of: str, share: str) -> tuple[str, str, str]:
    """A distance or a budget and its interval, as words; what lies outside of all that was measured is said to."""
    ends = (
        (card["tasks"]["distances"][0], card["tasks"]["distances"][2])
        if of == "distance"
        else (1, card["forecast"]["at"])
    )
    low, high = f"< {ends[0]:g}", f"> {ends[1]:g}"

    def bound(value: float | None) -> str:
        return high if value is None else low if value == 0 else f"{value:.1f}".removesuffix(".0")

    value, lo, hi = (bound(card[of][share][name]) for name in ("value", "lo", "hi"))
    return value, lo, hi


def _told(card: Card, of: str, share: str) -> str:
    value, lo, hi = _range(card, of, share)
    return value if value == lo == hi else f"{value} [{lo}, {hi}]"


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _tiles(card: Card) -> str:
    if "measured" not in card:
        return ""
    unit, tiles = card["unit"], []
    for of, name in (("distance", "{} horizon, goal distance"), ("budget", f"{unit} for {{}}")):
        for share in SHARES if card[of] else ():
            value, lo, hi = _range(card, of, share)
            tiles.append((name.format(_share(float(share))), value, "" if value == lo == hi else f"{lo} to {hi}"))
    if all_of := card["effective"]["all"]:
        tiles.append(
            (f"effective horizon, {unit}", f"{all_of['mean']:.1f}", f"{all_of['lo']:.1f} to {all_of['hi']:.1f}")
        )
    hit = {None: "nothing to predict", True: "hit", False: "miss"}[card["measured"]["hit"]]
    tiles.append(("prediction", hit, ""))
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)} <small>{escape(ends)}</small></dd></div>"
        for name, value, ends in tiles
    )
    return f"<dl>{shown}</dl>"


def _three_words(card: Card) -> list[list[str]]:
    """Goal distance, interaction budget and effective horizon, each where it is known."""
    unit, distances = card["unit"], card["tasks"]["distances"]
    rows = [["word", "what it is", "here"]]
    far = "not known" if not distances else f"{distances[0]} to {distances[2]}, median {distances[1]}"
    rows.append(["goal distance", "fewest actions that do the task", far])
    said = card["forecast"]
    rows.append(["interaction budget", f"{unit} that an episode may take", f"{said['budget']:g}, then {said['at']:g}"])
    if "effective" in card:
        means = {
            name: of and f"{of['mean']:.1f} [{of['lo']:.1f}, {of['hi']:.1f}]" for name, of in card["effective"].items()
        }
        here = f"{means['all']}; of successes {means['successes'] or 'none'}"
        rows.append(["effective horizon", f"{unit} that the policy takes", here])
        for share in SHARES:
            percent = _share(float(share))
            if card["distance"]:
                told = _told(card, "distance", share)
                rows.append([f"{percent} horizon", "goal distance at which so many are done", told])
            told = _told(card, "budget", share)
            rows.append([f"budget for {percent}", f"fewest {unit} within which so many are done", told])
    return rows


def _forecast(card: Card) -> str:
    said, unit = card["forecast"], card["unit"]
    when = f"written {said['written']}"
    if came := card.get("measured"):
        when += f", measured {came['at']}"
    text = (
        f"{said['under_way']} of {said['tasks']} episodes were still under way at {said['budget']:g} {unit}. "
        f"{forecast_in_words(card)} ({when}; SHA-256 of the prediction and of what it was made of: {said['sha256']})"
    )
    return f"<p>{escape(text)}</p>"


def _splits(card: Card) -> list[list[str]]:
    rows = [["tokens a task", "best use", "success", "plain", "difference"]]
    for split in card.get("spending", {}).get("splits", ()):
        mean, lo, hi = split["difference"]
        rows.append(
            [
                f"{split['tokens']:.0f}",
                split["best"].replace("_", " "),
                f"{split['success']:.3f}",
                f"{split['plain']:.3f}",
                f"{mean:+.3f} [{lo:+.3f}, {hi:+.3f}]",
            ]
        )
    return rows


def _settings(card: Card) -> list[list[str]]:
    rows = [["tokens go to", "setting", "tokens a task", "success", "95 %"]]
    for s in sorted(card.get("spending", {}).get("settings", ()), key=lambda s: s["tokens"]):
        lo, hi = s["interval"]
        name = s["name"].replace("_", " ")
        rows.append([s["kind"], name, f"{s['tokens']:.0f}", f"{s['success']:.3f}", f"{lo:.2f} to {hi:.2f}"])
    return rows


def _spending(card: Card) -> str:
    """The section on what tokens are best spent on; empty where that was not measured."""
    if "spending" not in card:
        return ""
    words = (
        "The best measured setting within so many tokens a task; chosen on one half of the tasks, measured on the "
        "other, and the other way about. Plain is one episode of all turns."
    )
    return (
        '<section aria-labelledby="spending"><h2 id="spending">What tokens are best spent on</h2>'
        f'<p class="quiet">{words}</p>{table_html(_splits(card))}'
        f"<details><summary>All settings</summary>{table_html(_settings(card))}</details></section>"
    )


def _made(card: Card) -> str:
    tasks = card["tasks"]
    commit = f", commit {card['commit'][:10]}" if card["commit"] else ""
    sources = ", ".join(tasks["sources"][:8])
    judge = ""
    if asked := card.get("judge_usage"):
        judge = (
            f" Its judge: {asked['requests']:,} requests, {asked['read']:,} tokens read, {asked['sampled']:,} sampled."
        )
    made = f"{tasks['count']} held-out tasks ({sources}), seed {card['seed']}{commit}."
    return f"{made}{judge} Again: {card['command']}"


def _figures(card: Card) -> list[dict[str, Any]]:
    found = [_by_budget(card), _by_distance(card), _by_tokens(card)]
    return [figure for figure in found if figure]


def _by_budget(card: Card) -> dict[str, Any] | None:
    if "curve" not in card:
        return None
    said = card["forecast"]
    curve = [_point(w["budget"], w["success"], w["lo"], w["hi"]) for w in card["curve"]]
    early = [p for p in curve if p["x"][0] <= said["budget"]]
    late = [p for p in curve if p["x"][0] >= said["budget"]]
    cone = [
        _point(said["budget"], said["success"], said["success"], said["success"]),
        _point(said["at"], said["mean"], said["lo"], said["hi"]),
    ]
    under_way = [_point(w["budget"], w["under_way"]) for w in card["curve"]]
    series = [
        _series("measured first", early, "blue"),
        _series("predicted", cone, "orange", dash="5 4"),
        _series("measured after", late, "green"),
        _series("under way", under_way, "grey", dash="2 3"),
    ]
    caption = (
        "Share of the held-out tasks done within so many, with 95 % intervals; of the prediction, when it was written."
    )
    return _lines("Success by budget", caption, card["unit"], series, wide=True)


def _by_distance(card: Card) -> dict[str, Any] | None:
    points = [_point(d["distance"], d["success"], d["lo"], d["hi"]) for d in card.get("by_distance", ())]
    if len(points) < 2:
        return None
    caption = f"Within {card['forecast']['at']:g} {card['unit']}, by the fewest actions that do the task."
    series = [_series("success", points, "blue", "circle")]
    return _lines("Success by goal distance", caption, "goal distance", series, wide="spending" not in card)


def _by_tokens(card: Card) -> dict[str, Any] | None:
    settings = card.get("spending", {}).get("settings", ())
    series = []
    for kind, (hue, mark) in KINDS.items():
        of = sorted((s for s in settings if s["kind"] == kind), key=lambda s: s["tokens"])
        if kind == "samples":  # a line of the best so far: limits of turns cross
            of = [s for k, s in enumerate(of) if all(s["success"] > t["success"] for t in of[:k])]
        series.append(_series(kind, [_point(s["tokens"], s["success"]) for s in of], hue, mark))
    series = [s for s in series if s["points"]]
    if not series:
        return None
    caption = "What a task costs in sampled tokens, all counted, and what that brings, by what they go to."
    return _lines("Success by tokens", caption, "sampled tokens a task", series)


def _point(x: float, y: float, lo: float | None = None, hi: float | None = None) -> dict[str, Any]:
    return {"x": [x], "y": y, "lo": lo, "hi": hi}


def _series(name: str, points: list[dict[str, Any]], hue: str, mark: str = "", dash: str = "") -> dict[str, Any]:
    return {"name": name, "hue": hue, "mark": mark, "dash": dash, "step": False, "points": points}


def _lines(title: str, caption: str, x: str, series: list[dict[str, Any]], wide: bool = False) -> dict[str, Any]:
    """A figure of lines as `report.figures` has them."""
    more = {"y": "success", "rules": [], "share": True, "free": False}
    return {"kind": "lines", "title": title, "caption": caption, "axes": [x], "series": series, "wide": wide, **more}
