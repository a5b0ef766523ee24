"""WebArena's checkers (arXiv 2307.13854, section 3.2): of the answer, of the last address, of what pages hold.

What always holds: nothing is executed (the environment has run the programs, see `web.benchmarks.programs`), and
an environment that did not keep what a checker reads is an error, not a reward of 0. A checker that compares meanings
(`fuzzy_match`) asks; where nobody is there to be asked it raises, whatever the answer was.

| evaluator | matched when |
|---|---|
| `string_match` | `exact_match`: the answer is the text; `must_include`: it holds each text; `fuzzy_match`: a judge says that it means the texts; `fuzzy_match: "N/A"`: it is N/A, or a judge says that it gives `string_note` as the reason |
| `url_match` | the last address holds host and path of one of `reference_url`, and its query a value of each key |
| `program_html` | what each program read is as `required_contents` says |

All rules that are given have to hold. Four things differ from WebArena's code. ` |OR| ` separates alternatives in
`must_include` of an answer too (as in WebArena-Lite: WebArena's data has it, its code takes it for a part of the text).
The references of one `fuzzy_match` are one question (as in WebArena-Lite and TTI), not one each. A program that could
not be read matches nothing, not even an empty text. An episode that a budget cut is not judged here at all, where
WebArena looks at the pages even then (see `rollout.episode`).
"""  # noqa: E501 (a table)

import html
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from longstride.core.errors import TaskError, short
from longstride.core.task import Task
from longstride.rewards.evaluators import EVALUATORS
from longstride.web.benchmarks.programs import Program, read_programs
from longstride.web.benchmarks.records import is_address, is_texts
from longstride.web.benchmarks.webarena import INFEASIBLE

Ask = Callable[[str, str, dict[str, str], tuple[str, ...]], bool]
"""Key, question, what it is about (name to text) and the verdicts to choose from, to: was it the first of them?"""
GRADES = ("correct", "partially correct", "incorrect")
"""WebArena's grades of a fuzzy match (`llm_fuzzy_match` there)."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)+|\w+(?:[-/]\w+)*|[^\w\s]")
"""Words, numbers and marks, close to the Treebank tokens that WebArena's single-character rule looks at."""


def needs_judge(task: Task, kind: str) -> TaskError:
    """The error of an evaluator that has nobody to ask."""
    return TaskError(f"task {task.id!r}: the evaluator {kind!r} compares meanings; use a reward with a judge")


def not_kept(task: Task, kind: str, what: str) -> TaskError:
    """The error of an evaluator whose environment does not keep what it judges."""
    return TaskError(
        f"task {task.id!r}: the evaluator {kind!r} needs {what} in the environment's final state; use an environment "
        "that keeps it"
    )


def string_match(
    task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any], ask: Ask | None = None
) -> dict[str, Any]:
    """Evidence on the answer.

    Raises:
        TaskError: malformed, or `ask` is needed and None.
    """
    rules = {key: value for key, value in spec.items() if key != "type"}
    if not _is_string_match(rules):
        raise TaskError(
            f"task {task.id!r}: the evaluator 'string_match' takes one or more of `exact_match` (a text), "
            f"`must_include` (a list of texts) and `fuzzy_match` (a list of texts, or {INFEASIBLE!r} and perhaps a "
            f"`string_note`); got {short(spec)}"
        )
    exact, fuzzy, reason = map(rules.get, ("exact_match", "fuzzy_match", "string_note"))
    include = rules.get("must_include", [])
    if ask is None and fuzzy is not None and (fuzzy != INFEASIBLE or reason):
        raise needs_judge(task, "string_match")
    evidence = {"evaluator": "string_match", "expected": rules, "got": answer}
    if answer is None:
        return evidence | {"matched": False, "note": "no answer"}
    matched = (
        (exact is None or clean(answer) == clean(exact))
        and all(includes(answer, text, alone=len(include) == 1) for text in include)
        and (fuzzy is None or _means(task, answer, fuzzy, reason, ask))
    )
    return evidence | {"matched": matched}


def url_match(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    """Evidence on the last address: WebArena's rule "GOLD in PRED".

    Raises:
        TaskError: malformed, or the final state has no `url`.
    """
    reference = spec.get("reference_url")
    golds = reference.split(" |OR| ") if isinstance(reference, str) else []
    if spec.keys() != {"type", "reference_url"} or not golds or not all(map(is_address, golds)):
        raise TaskError(
            f"task {task.id!r}: the evaluator 'url_match' takes `reference_url` (addresses with ' |OR| ' between) and "
            f"nothing else; got {short(spec)}"
        )
    url = state.get("url")
    if not isinstance(url, str):
        raise not_kept(task, "url_match", "the last address (`url`)")
    evidence = {"evaluator": "url_match", "expected": reference, "got": url}
    try:
        base, query = _split(url)
    except ValueError:
        return evidence | {"matched": False, "note": "the last address cannot be read"}
    wanted: dict[str, set[str]] = {}
    bases = []
    for gold in golds:
        gold_base, gold_query = _split(gold)
        bases.append(gold_base)
        for key, values in gold_query.items():  # WebArena pools the queries of all alternatives
            wanted.setdefault(key, set()).update(values)
    matched = any(b in base for b in bases) and all(v & set(query.get(k, ())) for k, v in wanted.items())
    return evidence | {"matched": matched}


def program_html(
    task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any], ask: Ask | None = None
) -> dict[str, Any]:
    """Evidence on what the programs read.

    Raises:
        TaskError: malformed, the final state does not have a content for each program (`programs`), or `ask` is needed
            and None.
    """
    if spec.keys() != {"type", "programs"}:
        raise TaskError(f"task {task.id!r}: the evaluator 'program_html' takes `programs` alone; got {short(spec)}")
    programs = read_programs(spec["programs"], f"task {task.id!r}")
    if ask is None and any(p.rule == "fuzzy_match" for p in programs):
        raise needs_judge(task, "program_html")
    read = state.get("programs")
    if not isinstance(read, list) or len(read) != len(programs):
        raise not_kept(task, "program_html", f"what {len(programs)} programs read (`programs`)")
    bad = next((i for i, p in enumerate(programs) if not _holds(task, p, read[i], i, ask)), None)
    evidence = {
        "evaluator": "program_html",
        "expected": [{p.rule: list(p.contents)} for p in programs],
        "got": [content[:200] if isinstance(content, str) else None for content in read],
        "matched": bad is None,
    }
    return evidence if bad is None else evidence | {"note": f"program {bad + 1} does not hold"}


def clean(text: str) -> str:
    """WebArena's form for comparing: no white space around, one pair of quotes off, lower case."""
    text = text.strip()
    for quote in "'\"":
        if len(text) > 1 and text[0] == text[-1] == quote:
            return text[1:-1].lower()
    return text.lower()


def includes(text: str, wanted: str, alone: bool) -> bool:
    """Whether a text holds one of the alternatives of `wanted`. Where a single character is `alone` in its list it has
    to be a token of its own: 0 is not in 10."""
    text = clean(text)
    return any(
        bool(gold) and (gold in _TOKEN.findall(text) if alone and len(gold) == 1 else gold in text)
        for gold in map(clean, wanted.split(" |OR| "))
    )


def _is_string_match(rules: dict[str, Any]) -> bool:
    known = {
        "exact_match": lambda v: is_texts([v]),
        "must_include": is_texts,
        "fuzzy_match": lambda v: v == INFEASIBLE or is_texts(v),
        "string_note": lambda v: isinstance(v, str) and rules.get("fuzzy_match") == INFEASIBLE,
    }
    return bool(rules.keys() - {"string_note"}) and all(key in known and known[key](v) for key, v in rules.items())


def _means(task: Task, answer: str, fuzzy: Any, reason: str | None, ask: Ask | None) -> bool:
    if fuzzy == INFEASIBLE:
        if clean(answer) == clean(INFEASIBLE):
            return True
        return (
            ask is not None
            and bool(reason)
            and ask(
                "infeasible",
                "A task that cannot be done was given to someone, who says why it was not done. Is that the actual "
                "reason, be it in other words or by implication?",
                {"task": task.goal, "actual_reason": str(reason), "reported_reason": answer},
                ("yes", "no"),
            )
        )
    return ask is not None and _graded(ask, "fuzzy_match", task, fuzzy, answer)


def _holds(task: Task, program: Program, content: Any, number: int, ask: Ask | None) -> bool:
    if not isinstance(content, str):
        return False
    content = html.unescape(content)
    if program.rule == "exact_match":
        return clean(content) == clean(program.contents[0])
    if program.rule == "must_include":
        return all(includes(content, wanted, alone=False) for wanted in program.contents)
    return ask is not None and _graded(ask, f"program.{number + 1}", task, program.contents, content)


def _graded(ask: Ask, key: str, task: Task, references: Any, answer: str) -> bool:
    return ask(
        key,
        "Grade an answer against its reference. Wording, order and units may differ; what the answer says has to be "
        "what the reference says, all of it. `N/A` means: cannot be done.",
        {"question": task.goal, "reference": ", ".join(references), "answer": answer},
        GRADES,
    )


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    """Host with path, and query, of an address. Raises: ValueError."""
    parts = urlsplit(url.rstrip("/"))
    return parts.netloc + parts.path, parse_qs(parts.query)


EVALUATORS.update(string_match=string_match, url_match=url_match, program_html=program_html)
