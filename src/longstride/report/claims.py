"""Claims as pages: what `claims.runner.run_claim` kept, as a table and a plot each, and all of a folder on one page.

What always holds: a page says what its JSON says and nothing else, so it can be made again at any time.
"""

import importlib.util
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longstride.claims.claim import SPENT
from longstride.claims.controls import learns_nothing
from longstride.claims.kept import read_kept
from longstride.claims.pilot import told
from longstride.claims.runner import CHECKS
from longstride.claims.standard import gain_beside, lacking, word
from longstride.core.files import write_atomically
from longstride.rollout.summary import HORIZONS
from longstride.stats import Relation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OVERVIEW = "overview.md"
KINDS = {
    "exact_recipe": "exact",
    "recipe": "language model",
    "extrapolation": "language model",
    "control_recipe": "control",
    "design_recipe": "design",
}
"""What a claim is about, by the type of its recipe."""
WORDS = {
    "holds": "hold in their worlds",
    "shown": "shown",
    "null": "null",
    "open": "open",
    "below standard": "below the standard",
}
"""What results that count are called, and how many of them are counted."""
LISTED = 20
"""Most seeds whose values stand one by one; of more, the lowest and the highest."""
CONTROL = {"not reproduced": "absent, as expected", "reproduced": "present", "undecided": "undecided"}
"""What a verdict means for a relation that must not hold."""


def write_pages(folder: Path, result: dict[str, Any]) -> None:
    """Writes `NAME.md` and `NAME.svg` of a result (the plot only where matplotlib is installed), and `overview.md`:
    all results that are kept in the folder.

    Raises:
        RunError: one of them is damaged.
    """
    name = result["name"]
    if drawn := importlib.util.find_spec("matplotlib") is not None:
        write_atomically(folder / f"{name}.svg", picture(result))
    write_atomically(folder / f"{name}.md", page(result, drawn))
    found = [path for path in (*folder.glob("*.json"), *folder.glob("*/*.json")) if "." not in path.stem]
    paths = sorted(found, key=lambda path: path.with_suffix("").parts)
    kept = {path.relative_to(folder).with_suffix(".md").as_posix(): read_kept(path) for path in paths}
    write_atomically(folder / OVERVIEW, overview(kept))


def overview(kept: Mapping[str, dict[str, Any]]) -> str:
    """The page of all claims: how many of each kind are reproduced, and a line for each result, with a link to the
    address that it is given by."""
    head = [
        "# Claims",
        "",
        "A line a claim: what it is called, the verdict on its relations, the first of them with its difference,",
        "and whether the effect is gone in every control, where it has to be. An exact problem *holds* in its",
        "worlds; *shown* is what was run, on a model or in an environment; *null*: the effect is not there; *open*:",
        "the seeds or the rules do not decide. *Below the standard* are results in one world that was set,",
        "without tuning, cost, pilot or a hash that was committed before. Of an *earlier form* are results whose",
        "claim has changed since they were measured: they count nowhere, and come last.",
        "",
        *(f"- {kind}: {of}" for kind, of in tally(kept.values()).items()),
        "",
        "| claim | is | verdict | seeds | first relation | difference, 95 % | control |",
        "|---" * 7 + "|",
    ]
    counted_first = sorted(kept.items(), key=lambda of: word(of[1]) == "earlier form")
    return "\n".join([*head, *(_line(result, address) for address, result in counted_first)]) + "\n"


def counts(results: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """How many results are called by each of `WORDS`, by kind of claim; those of an earlier form are not counted."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS.values()}
    for result in results:
        if (called := word(result)) in WORDS:
            found.setdefault(KINDS.get(result["recipe"]["type"], "other"), Counter())[called] += 1
    return found


def tally(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Those counts in words, of kinds that have any: `{"exact": "2 hold in their worlds, 1 null", ...}`."""
    return {
        kind: ", ".join(f"{of[called]} {said}" for called, said in WORDS.items() if of[called])
        for kind, of in counts(results).items()
        if of
    }


def _line(result: dict[str, Any], address: str) -> str:
    """A claim's line of the overview, with a link to `address`."""
    name, first = result["name"], result["effects"][0]
    controls = {e["verdict"] for e in result["control_effects"] if "void" not in e}
    left = "there" if "reproduced" in controls else "undecided" if "undecided" in controls else "gone"
    difference = f"{first['mean']:+.3f} [{first['lo']:+.3f}, {first['hi']:+.3f}]"
    cells = [
        f"[{name}]({address})",
        word(result),
        result["verdict"],
        str(len(result["seeds"])),
        first["relation"],
        difference,
    ]
    none = "void" if result["control_effects"] else "none"
    return f"| {' | '.join([*cells, left if controls else none])} |"


def judged(result: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    """Relation, interval and verdict of what is expected, and of the control, where no effect is what is expected."""
    doses = [result["dose"]] if "dose" in result else []
    return [
        *((e["relation"], e, e["verdict"]) for e in result["effects"]),
        *(
            (f"control: {e['relation']}", e, f"void: {e['void']}" if "void" in e else CONTROL[e["verdict"]])
            for e in result["control_effects"]
        ),
        *(
            (
                f"dose: from {dose['relations'][0]} to {dose['relations'][-1]}",
                dose,
                f"void: {dose['void']}" if "void" in dose else dose["verdict"],
            )
            for dose in doses
        ),
    ]


def page(result: dict[str, Any], drawn: bool) -> str:
    """A claim's page in Markdown; `drawn` where `NAME.svg` stands beside it."""
    lines = [f"# {result['name']}: {word(result)}", "", f"{result['statement']} ({result['paper']})", ""]
    if earlier := result.get("earlier"):
        lines += ["**Of an earlier form, and counted nowhere.** When this was measured, other than today:", ""]
        lines += [*(f"- {difference}" for difference in earlier), ""]
    elif lacks := lacking(result):
        lines += [f"**{result['verdict'].capitalize()}, below the standard**: {'; '.join(lacks)}.", ""]
    if because := result.get("because"):
        lines += [f"What forbids a better verdict: {'; '.join(because)}.", ""]
    spent = [name for name in SPENT if all(all(arm[name]) for arm in result["arms"].values())]
    measure = result["measure"]
    others = dict.fromkeys(m for arm in result["arms"].values() for m in arm["measures"] if m != measure)
    measured = [set(arm.get("horizons", ())) - {measure, *others} for arm in result["arms"].values()]
    horizons = [name for name in HORIZONS if all(name in of for of in measured)]
    titles = ["arm", measure, "95 % over seeds", "by seed", *(name.replace("_", " ") for name in others)]
    titles += [*(HORIZONS[name] for name in horizons), *(name.replace("_", " ") for name in spent)]
    lines += [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, arm in result["arms"].items():
        cells = [name, "", "", ""]
        if of := arm["measures"].get(measure):
            lo, hi = of["interval"]
            cells = [name, f"{of['value']:.3f}", f"{lo:.3f} to {hi:.3f}", _listed(of["by_seed"], "{:.3f}".format)]
        cells += [f"{of['value']:.3f}" if (of := arm["measures"].get(m)) else "" for m in others]
        cells += [f"{arm['horizons'][name]:.1f}" for name in horizons]
        lines.append(f"| {' | '.join([*cells, *(f'{sum(arm[s]) / len(arm[s]):,.0f}' for s in spent)])} |")
    lines += ["", "| relation | difference | 95 % | verdict |", "|---|---|---|---|"]
    reported = [(e["relation"], e, "reported only") for e in result.get("reported", [])]
    ways = result.get("design", {}).get("ways", ())  # of which earlier results have matched the ends of training
    reported += [
        (f"{e['relation']}, at equal {e['spent'].replace('_', ' ')}", e, "reported only")
        for e in result["matched"]
        if not any(side.partition("@")[2] in ways for side in Relation.of(e["relation"])[:2])
    ]
    for relation, e, judgement in (*judged(result), *reported):
        lines.append(f"| {relation} | {e['mean']:+.3f} | {e['lo']:+.3f} to {e['hi']:+.3f} | {judgement} |")
    lines += [*_worlds(result), *_fairness(result)]
    if result["check_again"]:
        lines += [
            "",
            "| policy | " + " | ".join(f"{c} checks" for c in CHECKS) + " |",
            "|---" * (len(CHECKS) + 1) + "|",
        ]
        for name in result["check_again"][0]:
            columns = zip(*(seed[name] for seed in result["check_again"]), strict=True)
            means = [sum(p["success"] for p in column) / len(column) for column in columns]
            lines.append(f"| {name} | " + " | ".join(f"{m:.3f}" for m in means) + " |")
    lines += (
        ["", f"![what was measured]({result['name'].rpartition('/')[2]}.svg)"]
        if drawn
        else ["", "No plot: matplotlib is not installed (`pip install 'longstride[plot]'`, then run the claim again)."]
    )
    if verdicts := result.get("judged"):
        lines += [
            "",
            "Which relations decide was changed after the run, which can lower a verdict and never raise it;",
            f"differences and intervals are those of the run. Verdicts, the first one first: {', '.join(verdicts)}.",
        ]
    seeds = _listed(result["seeds"], str)
    commit = f"{result['commit']}{' with changes' if result.get('clean') is False else ''}"
    lines += [
        "",
        f"Seeds {seeds}; Longstride at commit {commit}; {result['seconds'] / 3600:.2f} h; `{result['command']}`.",
    ]
    return "\n".join(lines) + "\n"


def _worlds(result: dict[str, Any]) -> list[str]:
    """In which share of its worlds each relation holds, and with which constants it turns."""
    lines = []
    for effect in result["effects"]:
        if worlds := effect.get("worlds"):
            share, lo, hi, against = (f"{100 * worlds[name]:.0f}" for name in ("share", "lo", "hi", "against"))
            lines += [
                "",
                f"**In {share} % of the worlds** [{lo}, {hi}] {effect['relation']}; in {against} % the difference",
            ]
            lines += ["has the other sign. By thirds of each constant, the one that matters most first:"]
            lines += ["", "| constant | third | mean difference | holds in |", "|---" * 4 + "|"]
            for constant, thirds in worlds["turns"].items():
                for third in thirds:
                    ends = " to ".join(f"{of:.3g}" if isinstance(of, float) else str(of) for of in _ends(third))
                    lines.append(f"| `{constant}` | {ends} | {third['mean']:+.3f} | {100 * third['share']:.0f} % |")
    return lines


def _ends(third: dict[str, Any]) -> list[Any]:
    return [third["from"]] if third["from"] == third["to"] else [third["from"], third["to"]]


def _fairness(result: dict[str, Any]) -> list[str]:
    """How arms were tuned, what they cost, and what was fixed before."""
    lines = []
    for arm, of in result.get("tuned", {}).items():
        if of["tried"]:
            chosen = ", ".join(f"`{key}` = {value}" for key, value in of["chosen"].items())
            ends = f"; at an end of its grid: {', '.join(of['ends'])}" if of["ends"] else ""
            floor = f"; {said}" if (said := learns_nothing(result.get("design", {}), of["tried"])) else ""
            whole = f"; {_at_full_length(result, of)}" if "whole" in of else ""
            lines.append(f"- {arm}: {chosen}, the best of {len(of['tried'])}{whole}{ends}{floor}")
    if lines:
        shorter = ", ".join(f"`{key}` = {value}" for key, value in result.get("design", {}).get("tuning", {}).items())
        where = f", in runs with {shorter}" if shorter else ""
        lines = ["", f"Arms enter at their best on other seeds{where}:", "", *lines]
    if cost := result.get("design", {}).get("cost"):
        equal = " Relations are judged where both sides have spent alike." if result["design"].get("equal_cost") else ""
        said = ", ".join(f"{100 * share:.1f} % ({text})" for text, share in result["costs"].items())
        lines += ["", f"What counts as cost is `{cost}`; sides differ by {said}.{equal}"]
    if frozen := result.get("frozen"):
        lines += ["", f"Frozen as {frozen['hash'][:12]} in commit {frozen['commit']}, before its seeds were run."]
    if pilot := result.get("pilot"):
        lines += ["", f"Its pilot: {told(pilot)}."]
    return lines


def _at_full_length(result: dict[str, Any], tuned: dict[str, Any]) -> str:
    """What an arm that was tuned on shorter runs came to with the settings beside its own."""
    gain = gain_beside(tuned, result["design"])
    better = f"another is better by {gain:.3f}" if gain > 0 else "none is better"
    return f"at full length {better}, of {len(tuned['whole'])}"


def _listed(values: list[Any], shown: Callable[[Any], str]) -> str:
    """All values; of many the lowest and the highest."""
    if len(values) <= LISTED:
        return ", ".join(map(shown, values))
    return f"{shown(min(values))} to {shown(max(values))}"


def picture(result: dict[str, Any]) -> str:
    """The figure of a claim as SVG, the same text for the same result. Needs matplotlib."""
    from matplotlib import rc_context

    figure = _by_strategy(result) if result.get("along") else _by_arm(result)
    text = io.StringIO()
    with rc_context({"svg.hashsalt": result["name"]}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _by_strategy(result: dict[str, Any]) -> "Figure":
    """The measure against what an evaluation spends, of the trained policy: mean of the seeds. One curve for strategies
    whose names differ in numbers alone; each begins at the first strategy."""
    from matplotlib.figure import Figure

    measure, along = result["measure"], result["along"]
    figure = Figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    kinds: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for side, arm in result["arms"].items():
        name, _, strategy = side.partition("@")
        if strategy in result.get("design", {}).get("ways", ()):
            continue
        kind = " ".join(part for part in strategy.split("_") if not part.isdecimal())
        x, y = (arm["measures"][m]["value"] for m in (along, measure))
        kinds.setdefault((name, kind), []).append((x, y))
    for (name, kind), points in kinds.items():
        if kind:
            curve = np.array(sorted([*kinds[name, ""], *points]))
            ax.plot(*curve.T, "o-", label=f"{name}: {kind}", markersize=4)
    ax.set_xlabel(f"{along.replace('_', ' ')} a task")
    ax.set_ylabel(f"held-out {measure}")
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return figure


def _by_arm(result: dict[str, Any]) -> "Figure":
    """The final measure of each arm: every seed, their mean and its interval. Of strategies, the first and what is
    compared."""
    from matplotlib.figure import Figure

    measure = result["measure"]
    compared = {side for text in result["ordering"] + result["control"] for side in Relation.of(text)[:2]}
    arms = {
        side: of
        for side, arm in result["arms"].items()
        if (of := arm["measures"].get(measure)) and ("@" not in side or side in compared)
    }
    figure = Figure(figsize=(7, 0.8 + 0.35 * len(arms)), layout="constrained")
    ax = figure.subplots()
    for row, of in enumerate(arms.values()):
        ax.plot(of["by_seed"], [row] * len(of["by_seed"]), "o", color="C0", alpha=0.3, markersize=4)
        ax.plot(of["interval"], [row] * 2, color="black", linewidth=1.5)
        ax.plot(of["value"], row, "|", color="black", markersize=12)
    ax.set_yticks(range(len(arms)), list(arms))
    ax.set_ylim(len(arms) - 0.5, -0.5)
    ax.set_xlabel(f"held-out {measure}")
    return figure
