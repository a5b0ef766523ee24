"""Claims: paired by task and seed, judged by their ordering and controls, resumable, written down whatever comes
out."""

import importlib.util
import json
import random
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any, cast

import numpy as np
import pytest
from guides import own_modules
from helpers import content, shown_of, tiny_policy

from longstride.claims.claim import SPENT, Claim
from longstride.claims.curves import _add_gained, _matched, matched, paired_values
from longstride.claims.judging import judge_kept, verdict_of
from longstride.claims.kept import write_kept
from longstride.claims.runner import run_claim
from longstride.claims.tuning import arm_run, tuning_run
from longstride.cli.main import main
from longstride.core.errors import ConfigError, RunError
from longstride.core.lock import held
from longstride.core.task import Task
from longstride.curriculum import BudgetSchedule
from longstride.envs.base import Observation, Step, TaskSource
from longstride.learner.config import LearnerConfig
from longstride.methods import MixedGroups
from longstride.methods.cloning import FilteredBC
from longstride.models.load import save_policy
from longstride.papers.tti.method import TTIReplay
from longstride.report import claims as pages
from longstride.report.claims import write_pages
from longstride.rewards import TaskReward
from longstride.rollout.context import RecentObservations
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.run.recipe import Evaluation, Recipe
from longstride.stats import Effect, Finding, Judgement, Ordering
from longstride.strategies import Direct
from longstride.strategies.best_of import BestOf


class Patience:
    """The answer counts from the turn on that the task asks for: a horizon below it cannot succeed."""

    def __init__(self) -> None:
        self.turns = 0

    async def reset(self, task: Task, seed: int) -> Observation:
        self.wanted = task.facts
        return Observation("home [1]")

    async def step(self, text: str) -> Step:
        self.turns += 1
        done = self.turns >= self.wanted
        return Step(Observation("home [1]"), action="answer", answer="yes" if done else None, terminated=done)

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


class PatienceTasks(TaskSource):
    """One task in six takes one turn, of the others half take two and half three."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.held_out(n)

    def held_out(self, n: int) -> list[Task]:
        evaluator = {"type": "answer", "reference": "yes"}
        turns = [1 if k % 6 == 0 else 2 if k % 12 < 7 else 3 for k in range(n)]
        return [
            Task(id=f"t{k}", source="patience", goal="wait", start="/", facts=facts, evaluator=evaluator)
            for k, facts in enumerate(turns)
        ]

    def env(self) -> Patience:
        return Patience()


def make_claim(recipe: Recipe, **changes: Any) -> Claim:
    long, middle = (recipe.replace(test_budget={"turns": n}) for n in (4, 2))
    settings: dict[str, Any] = {
        "name": "patience",
        "paper": "none",
        "statement": "A long horizon solves what a short one cannot.",
        "recipe": recipe,
        "arms": {"short": recipe, "long": long, "middle": middle, "long_too": long.replace(budget={"turns": 2})},
        "expected": Ordering(relations=("long > short by 0.1",)),
        "control": Ordering(relations=("short > middle by 0.1",)),
        "seeds": tuple(range(5)),
    }
    return Claim(**(settings | changes))


def short_and_long(claim: Claim) -> Claim:
    """Of the arms the short and the long one alone, whose runs take half the time."""
    return claim.replace(arms={name: claim.arms[name] for name in ("short", "long")})


class Count:
    """Counts rows."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, row: dict[str, Any]) -> None:
        self.rows += 1

    def progress(self, phase: str, done: int, total: int) -> None:
        pass


@pytest.fixture(scope="module")
def recipe(tmp_path_factory) -> Recipe:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_policy(tiny_policy("home wait omitted"), folder)
    return Recipe(
        name="patience",
        iterations=1,
        episodes_per_iteration=4,
        model=str(folder),
        tasks=PatienceTasks(),
        budget=BudgetSchedule(turns=3, turn_tokens=2),
        test_budget=BudgetSchedule(turns=1, turn_tokens=2),
        context=RecentObservations(),
        reward=TaskReward(),
        replay=TTIReplay(),
        credit=FilteredBC(),
        learner=LearnerConfig(dtype="float32"),
        evaluation=Evaluation(tasks=12, baselines=False),
    )


@pytest.fixture(scope="module")
def done(recipe, tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("claims")
    result = run_claim(make_claim(recipe, check_again="long"), folder)
    write_pages(folder, result)
    return folder, result


@pytest.mark.filterwarnings("ignore:.*nothing was trained")
def test_an_arm_that_learns_nothing_is_a_result_and_not_given_up(recipe, tmp_path):
    idle = recipe.replace(iterations=2, replay=MixedGroups(), patience=1)
    with pytest.raises(RunError, match="led nowhere"):
        idle.train(tmp_path / "alone")
    result = run_claim(short_and_long(make_claim(idle, control=None, seeds=(0, 1))), tmp_path)
    assert result["arms"]["short"]["env_steps"] and result["effects"][0]["mean"] > 0

    law = Extrapolation(name="law", run=idle, readings={"stays": Reading()})
    fitted = make_claim(idle).model_copy(update={"arms": {"law": law}, "recipe": law})
    assert cast(Any, arm_run(fitted, "law", {}, 0)).run.patience == 3


def test_a_claim_writes_what_it_found(done):
    folder, result = done
    assert json.loads((folder / "patience.json").read_text()) == result
    assert result["verdict"] == "reproduced"
    assert [e["relation"] for e in result["effects"]] == ["long > short by 0.1"]
    assert result["effects"][0]["mean"] == 0.833333
    assert result["arms"]["short"]["measures"]["success"]["by_seed"] == [0.166667] * 5
    assert result["arms"]["long"]["changes"] == {"test_budget.turns": 4}
    assert set(result["arms"]["long"]) == {"changes", "measures", "horizons", "env_steps", "sampled_tokens"}
    assert {p.name for p in (folder / "patience").iterdir()} == {
        f"{a}-{s}" for a in ("short", "long", "middle", "long_too") for s in range(5)
    }
    page = (folder / "patience.md").read_text()
    assert page.startswith("# patience: below standard") and "**Reproduced, below the standard**: long and" in page
    assert "| long > short by 0.1 | +0.833 |" in page
    assert "absent, as expected" in page


def test_check_again_is_measured_for_the_warm_start_and_the_final_policy(done):
    _, result = done
    for seed in result["check_again"]:
        assert {name: [p["checks"] for p in points] for name, points in seed.items()} == {
            "warm_start": [1, 2, 3, 4],
            "agent": [1, 2, 3, 4],
        }


def test_arms_are_compared_under_another_strategy_and_by_another_measure(recipe, tmp_path):
    both = recipe.replace(evaluation={"strategies": (Direct(), Direct(turns=2))})
    relations = ("long > long@direct_2_turns by 0.2", "long@direct_2_turns > short by 0.2")
    claim = short_and_long(make_claim(both, measure="length", expected=Ordering(relations=relations), control=None))
    result = run_claim(claim, tmp_path, seeds=(0, 1))
    assert set(result["arms"]) == {a + s for a in ("long", "short") for s in ("", "@direct_2_turns")}
    long, cut, short = (
        result["arms"][side]["measures"]["length"]["value"] for side in ("long", "long@direct_2_turns", "short")
    )
    differences = pytest.approx([long - cut, cut - short], abs=1e-5)
    assert long > cut > short and [e["mean"] for e in result["effects"]] == differences
    page = pages.page(result, drawn=True)
    assert "| arm | length |" in page and "| env steps |" in page and "| long@direct_2_turns |" in page


def test_of_many_seeds_a_page_has_the_lowest_and_the_highest() -> None:
    assert pages._listed([0.5, 0.25], "{:.2f}".format) == "0.50, 0.25"
    assert pages._listed([k / 100 for k in range(21)], "{:.2f}".format) == "0.00 to 0.20"


def test_ways_to_spend_are_compared_where_they_have_spent_as_much(recipe, tmp_path):
    direct, two, four = Direct(), Direct(turns=2), Direct(turns=4)
    votes = (BestOf(attempts=2), BestOf(attempts=3))
    several = recipe.replace(evaluation={"strategies": (direct, two, four, *votes)})
    ways = {"turns": (direct.name, two.name, four.name), "votes": (direct.name, *(s.name for s in votes))}
    spend = {"cost": "spent_tokens", "equal_cost": True}
    expected = Ordering(relations=("short@turns > short@votes by 0.1",))
    claim = short_and_long(make_claim(several, expected=expected, control=None, ways=ways, **spend))
    result = run_claim(claim, tmp_path, seeds=(0, 1))

    def curve(seed: int, way: str) -> tuple[list[float], list[float]]:
        sides = ["short", *(f"short@{name}" for name in ways[way][1:])]
        of = [result["arms"][side]["measures"] for side in sides]
        spent, success = ([m[name]["by_seed"][seed] for m in of] for name in ("spent_tokens", "success"))
        return spent, success

    at = [min(max(curve(seed, way)[0]) for way in ways) for seed in (0, 1)]
    read = {way: [np.interp(at[seed], *curve(seed, way)) for seed in (0, 1)] for way in ways}
    assert result["effects"][0]["mean"] == pytest.approx(np.subtract(read["turns"], read["votes"]).mean(), abs=1e-5)
    assert result["effects"][0]["mean"] > 0.1
    assert not [
        line for line in pages._by_strategy({**result, "along": "spent_tokens"}).axes[0].lines if line == "turns"
    ]
    alone = {"turns": (direct, two, four), "votes": (direct, *votes)}
    arms = {way: claim.arms["short"].replace(evaluation={"strategies": of}) for way, of in alone.items()}
    apart = claim.replace(name="apart", arms=arms, expected={"relations": ("turns@turns > votes@votes by 0.1",)})
    same = run_claim(apart, tmp_path, seeds=(0, 1))["effects"][0]
    assert (same["mean"], same["lo"]) == (result["effects"][0]["mean"], result["effects"][0]["lo"])
    unknown = {"turns": (direct.name, two.name, "direct_9_turns")}
    with pytest.raises(ConfigError, match="short@turns: unknown strategy 'direct_9_turns'"):
        run_claim(claim.replace(ways=unknown, expected={"relations": ("short@turns > long",)}), tmp_path)
    with pytest.raises(ValueError, match="equal_cost of a measure of evaluations"):
        make_claim(several, ways=ways, cost="env_steps", equal_cost=True)


def test_a_claim_along_tokens_shows_each_kind_of_strategy_by_what_it_spends(recipe, tmp_path):
    several = recipe.replace(
        evaluation={"strategies": (Direct(), Direct(turns=1), Direct(turns=2), BestOf(attempts=2))}
    )
    claim = short_and_long(
        make_claim(several, along="spent_tokens", expected=Ordering(relations=("long > short",)), control=None)
    )
    result = run_claim(claim, tmp_path, seeds=(0, 1))
    first = result["arms"]["long"]["measures"]
    assert set(first) == {"success", "spent_tokens"} == set(result["arms"]["short@best_of_2_by_majority"]["measures"])
    lines = {line.get_label(): np.asarray(line.get_xydata()) for line in pages._by_strategy(result).axes[0].lines}
    assert set(lines) == {
        f"{arm}: {kind}" for arm in ("long", "short") for kind in ("direct turns", "best of by majority")
    }
    assert len(lines["long: direct turns"]) == 3 and len(lines["long: best of by majority"]) == 2
    assert [first["spent_tokens"]["value"], first["success"]["value"]] in lines["long: direct turns"].tolist()


def test_the_figure_has_every_seed_of_every_arm_and_the_interval_of_the_mean(done):
    _, result = done
    ax = pages._by_arm(result).axes[0]
    assert (
        [tick.get_text() for tick in ax.get_yticklabels()]
        == list(result["arms"])
        == ["short", "long", "middle", "long_too"]
    )
    seeds, interval, mean = (np.asarray(line.get_xydata()).tolist() for line in ax.lines[:3])
    short = result["arms"]["short"]["measures"]["success"]
    assert seeds == [[0.166667, 0]] * 5 and mean == [[0.166667, 0]]
    assert interval == [[end, 0] for end in short["interval"]]


def test_what_is_kept_has_six_digits_whole_settings_and_a_line_for_each_entry(tmp_path):
    arms = {"a": {"by_seed": [1 / 3, 2.0, 1234567.8, 7]}, "b": {"by_seed": []}}
    settings = {"rate": 0.123456789, "loss": {"low": 0.2}}
    kept = write_kept(tmp_path / "x.json", {"name": "x", "recipe": settings, "seeds": [0, 1], "arms": arms})
    assert kept["arms"]["a"]["by_seed"] == [0.333333, 2.0, 1234570.0, 7] and kept["recipe"] == settings
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text) == kept
    assert text.splitlines() == [
        "{",
        ' "name": "x",',
        ' "recipe": {',
        '  "rate": 0.123456789,',
        '  "loss": {"low": 0.2}',
        " },",
        ' "seeds": [0, 1],',
        ' "arms": {',
        '  "a": {"by_seed": [0.333333, 2.0, 1234570.0, 7]},',
        '  "b": {"by_seed": []}',
        " }",
        "}",
    ]


def test_a_relation_is_judged_and_matched_in_its_own_measure(recipe, done, tmp_path):
    copytree(done[0], tmp_path, dirs_exist_ok=True)  # whose runs are those of this claim too
    relations = ("long > short by 0.1", "long > short by 0.1 in length")
    claim = make_claim(recipe, expected=Ordering(relations=relations), control=None)
    result = run_claim(claim, tmp_path, seeds=(0, 1))
    long, short = (result["arms"][side]["measures"] for side in ("long", "short"))
    for effect, measure in zip(result["effects"], ("success", "length"), strict=True):
        assert effect["mean"] == pytest.approx(long[measure]["value"] - short[measure]["value"], abs=1e-5)
        matched = [e["mean"] for e in result["matched"] if e["relation"] == effect["relation"]]
        assert len(matched) == 2 and effect["mean"] > 0.1
    assert "| by seed | length | budget | env steps |" in pages.page(result, drawn=True)


def test_what_is_only_reported_is_measured_and_decides_nothing(recipe, done, tmp_path):
    copytree(done[0], tmp_path, dirs_exist_ok=True)
    relations = ("short > long by 0.1", "long > short in length")
    result = run_claim(make_claim(recipe, reported=Ordering(relations=relations)), tmp_path)
    assert result["verdict"] == "reproduced" and [e["relation"] for e in result["reported"]] == list(relations)
    assert result["reported"][0]["mean"] == pytest.approx(-result["effects"][0]["mean"])
    assert "| short > long by 0.1 | -0.833 |" in (page := pages.page(result, drawn=True))
    assert page.count("reported only") == len(relations) + len(result["matched"])


def test_a_measure_that_is_not_there_is_named(recipe, tmp_path):
    with pytest.raises(ConfigError, match="no evaluation has the measure 'pass@64'"):
        run_claim(make_claim(recipe, measure="pass@64"), tmp_path, seeds=(0, 1))


def test_while_a_process_runs_a_claim_no_other_one_does(recipe, tmp_path):
    claim = make_claim(recipe)
    with held(tmp_path / claim.name), pytest.raises(RunError, match="being written by process"):
        run_claim(claim, tmp_path)


def test_a_finished_claim_is_judged_again_without_running_anything(done, recipe):
    folder, result = done
    count = Count()
    again = run_claim(make_claim(recipe, check_again="long"), folder, watch=lambda run: count)
    assert count.rows == 0 and again == result


CLIMB = """
import longstride as ls
import numpy as np
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe


class Level(ExactProblem):
    top: float = 1.0

    def measures(self, solution):
        return {"gap": self.top - float(solution["x"])}


class Climb(ExactMethod[Level]):
    rate: float = 0.5

    def start(self, problem, rng):
        return {"x": np.zeros(())}

    def step(self, problem, state, rng):
        return {"x": state["x"] + self.rate * (problem.top - state["x"])}


RECIPE = ExactRecipe(name="climb", problem=Level(), method=Climb(), iterations=2)
SLOW, FLAT = RECIPE.replace(method={"rate": 0.1}), {"problem": {"top": 0.0}}
CLAIM = ls.Claim(
    name="climb",
    paper="none",
    statement="A small rate leaves a gap.",
    recipe=RECIPE,
    arms={"quick": RECIPE, "slow": SLOW, "flat_quick": RECIPE.replace(**FLAT), "flat_slow": SLOW.replace(**FLAT)},
    measure="gap",
    expected=ls.Ordering(relations=("slow > quick by 0.1",)),
    control=ls.Ordering(relations=("flat_slow > flat_quick by 0.1",)),
    seeds=(0, 1, 2, 3, 4),
)
"""


def test_the_terminal_says_which_arm_and_seed_is_run_and_what_became_of_the_control(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "climb.py").write_text(CLIMB)
    with own_modules(tmp_path):
        assert main(["claim", "climb.py"]) == 0
    said = capsys.readouterr()
    runs = dict.fromkeys(line.partition(": ")[2].partition(":")[0] for line in said.err.splitlines())
    assert list(runs) == [f"{arm}, seed {n}" for n in range(5) for arm in ("quick", "slow", "flat_quick", "flat_slow")]
    assert "  gap 0.81 " in said.err
    assert "  slow > quick by 0.1: +0.560 [+0.560, +0.560] reproduced\n" in said.out
    assert (
        "  control: flat_slow > flat_quick by 0.1: +0.000 [+0.000, +0.000] void: an arm of it is at the floor\n"
        in said.out
    )


def test_what_is_kept_is_judged_by_the_relations_that_decide_now(done, recipe, tmp_path):
    folder, result = done
    kept = folder / "patience.json"
    first = result["ordering"][0]
    moved = make_claim(
        recipe,
        expected=Ordering(relations=tuple(result["control"])),
        control=None,
        reported=Ordering(relations=(first,)),
    )
    again = judge_kept(moved, kept, tmp_path)
    assert again["verdict"] == result["control_effects"][0]["verdict"] == "not reproduced" != result["verdict"]
    assert again["effects"] == result["control_effects"] and again["reported"] == result["effects"][:1]
    assert again["arms"] == result["arms"] and again == json.loads((tmp_path / "patience.json").read_text())
    assert json.loads(kept.read_text()) == result and again["matched"] == result["matched"]
    assert "changed after the run" in pages.page(again, drawn=True)
    with pytest.raises(ConfigError, match="nothing is kept of 'long > short by 0.77'"):
        judge_kept(make_claim(recipe, expected=Ordering(relations=("long > short by 0.77",))), kept, tmp_path)


def test_relations_that_were_chosen_after_the_run_never_raise_a_verdict(done, recipe, tmp_path):
    folder, result = done
    kept = tmp_path / "patience.json"
    kept.write_text(json.dumps(result | {"verdict": "undecided"}))
    again = judge_kept(make_claim(recipe), kept, tmp_path)
    assert again["effects"][0]["verdict"] == "reproduced" and again["verdict"] == "undecided"
    again = judge_kept(make_claim(recipe), kept, tmp_path)
    assert again["judged"] == ["undecided", "reproduced", "reproduced"] and again["verdict"] == "undecided"
    assert "the first one first: undecided, reproduced, reproduced." in pages.page(again, drawn=True)


@pytest.mark.parametrize(("control", "verdict"), [("undecided", "reproduced"), ("reproduced", "not reproduced")])
def test_a_control_that_is_void_lowers_no_verdict_that_is_judged_again_unless_it_shows_the_effect(
    done, recipe, tmp_path, control, verdict
):
    _, result = done
    void = [e | {"verdict": control, "void": "an arm of it is at the floor"} for e in result["control_effects"]]
    (tmp_path / "patience.json").write_text(json.dumps(result | {"verdict": "reproduced", "control_effects": void}))
    assert judge_kept(make_claim(recipe), tmp_path / "patience.json", tmp_path)["verdict"] == verdict


def test_what_is_kept_of_a_claim_that_has_changed_is_of_an_earlier_form(done, recipe, tmp_path):
    folder, _ = done
    assert "earlier" not in judge_kept(make_claim(recipe), folder / "patience.json", tmp_path)
    again = judge_kept(make_claim(recipe, seeds=(4, 5)), folder / "patience.json", tmp_path)
    assert again["earlier"] == ["seeds: [0, 1, 2, 3, 4], now [4, 5]"]
    write_pages(tmp_path, again)
    assert "- seeds: [0, 1, 2, 3, 4], now [4, 5]" in (tmp_path / "patience.md").read_text()
    overview = (tmp_path / "overview.md").read_text()
    assert "| [patience](patience.md) | earlier form | reproduced | 5 |" in overview
    assert "- language model" not in overview


def test_arms_of_one_seed_share_warm_start_tasks_and_seeds(done):
    folder, _ = done
    shown = [[content(t) for t in shown_of(folder / "patience" / f"{arm}-0", "before")] for arm in ("long", "long_too")]
    assert [(t["task"], t["seed"], t["turns"][0]["ids"]) for t in shown[0]] == [
        (t["task"], t["seed"], t["turns"][0]["ids"]) for t in shown[1]
    ]


def test_without_matplotlib_the_page_names_the_extra(done, monkeypatch, tmp_path):
    _, result = done
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    write_pages(tmp_path, result)
    assert not (tmp_path / "patience.svg").exists()
    assert "longstride[plot]" in (tmp_path / "patience.md").read_text()


def test_the_plot_is_an_svg(done):
    folder, _ = done
    assert "<svg" in (folder / "patience.svg").read_text()


def test_the_overview_has_a_line_for_each_result_that_is_kept(done, tmp_path):
    _, result = done
    for name in ("patience", "patience/another"):
        write_kept(tmp_path / f"{name}.json", result | {"name": name})
    write_pages(tmp_path, result)
    text = (tmp_path / "overview.md").read_text()
    assert "- language model: 2 below the standard\n" in text
    for name, line in zip(("patience", "patience/another"), text.splitlines()[-2:], strict=True):
        said = "below standard | reproduced | 5 | long > short by 0.1 | +0.833 ["
        assert line.startswith(f"| [{name}]({name}.md) | {said}")
        assert line.endswith("] | gone |")
    write_kept(tmp_path / "patience.json", result | {"earlier": ["another world"]})
    write_pages(tmp_path, result)
    last = [line.split("]")[0] for line in (tmp_path / "overview.md").read_text().splitlines()[-2:]]
    assert last == ["| [patience/another", "| [patience"], "what counts nowhere comes last"
    (tmp_path / "patience" / "another.json").write_text("{")
    with pytest.raises(RunError, match=r"another\.json cannot be read"):
        write_pages(tmp_path, result)


def test_arms_are_compared_where_both_have_spent_the_same_environment_steps():
    def curve(*points: tuple[int, float]) -> list[dict[str, Any]]:
        return [dict.fromkeys((*SPENT, "iterations"), x) | {"values": {"success": [y, None]}} for x, y in points]

    curves = {
        "a": [curve((0, 0.0), (1000, 1.0)), curve((0, 0.0), (1000, 0.8))],
        "b": [curve((0, 0.0), (500, 0.25)), curve((0, 0.0), (500, 0.25))],
    }
    found = _matched("a > b", "success", "env_steps", curves)
    assert found["budgets"] == [500, 500]
    assert found["better"] == [0.5, 0.4] and found["worse"] == [0.25, 0.25]
    assert found["mean"] == pytest.approx(0.2)
    late = {side: [points[1:] for points in by_seed] for side, by_seed in curves.items()}
    assert not matched(["a > b"], "success", late), "nothing is known of what less than the first evaluation brings"
    _add_gained(late["a"][0], "gained_success")
    assert "gained_success" not in late["a"][0][0]["values"]


def test_short_runs_that_tune_leave_their_start_out_unless_its_gain_chooses(recipe):
    of = make_claim(
        recipe, grid={"learner.lr": (0.1, 0.2, 0.3, 0.4, 0.5)}, tuning_seeds=(7, 8), tuning={"iterations": 1}
    )
    gained = make_claim(recipe, grid=of.grid, tuning_seeds=(7, 8), tuning=of.tuning, tuned_by="gained_success")
    whole = make_claim(recipe, grid=of.grid, tuning_seeds=(7, 8))
    runs = [
        tuning_run(c, "long", {}, 7, whole=w) for c, w in ((of, False), (of, True), (gained, False), (whole, False))
    ]
    assert [run.as_data()["evaluation"]["start"] for run in runs] == [False, True, True, True]
    assert [run.as_data()["evaluation"]["every"] == run.iterations for run in runs[::2]] == [True, True]


def test_a_task_that_failed_in_one_run_is_left_out_of_all():
    def curves(*by_seed: Sequence[float | None]) -> list[list[dict[str, Any]]]:
        return [[{"values": {"success": list(o)}}] for o in by_seed]

    final = paired_values({"a": curves([1, None, 0], [1, 1, 1]), "b": curves([0, 1, 0], [0, 0, 1])}, "success")
    assert np.array_equal(final["a"], [[1, 0], [1, 1]]) and np.array_equal(final["b"], [[0, 0], [0, 1]])
    with pytest.raises(RunError, match="failed"):
        paired_values({"a": curves([None], [1])}, "success")


@pytest.mark.parametrize(
    ("relation", "control", "verdict"),
    [
        ("reproduced", "not reproduced", "reproduced"),
        ("reproduced", "undecided", "undecided"),
        ("reproduced", "reproduced", "not reproduced"),
        ("undecided", "not reproduced", "undecided"),
        ("not reproduced", "undecided", "not reproduced"),
    ],
)
def test_the_verdict_needs_the_effect_and_its_absence_in_the_control(
    relation: Judgement, control: Judgement, verdict: Judgement
):
    def finding(judgement: Judgement) -> Finding:
        return Finding("a > b", Effect(0.0, 0.0, 0.0), 0.0, judgement)

    assert verdict_of([finding(relation)], [finding(control)]) == verdict


def test_a_claim_that_cannot_be_judged_is_refused_before_anything_runs(recipe, tmp_path):
    with pytest.raises(ValueError, match="did you mean 'short'"):
        make_claim(recipe, expected=Ordering(relations=("long > shirt",)))
    with pytest.raises(ConfigError, match="unknown strategy 'direct_3_turns'"):
        run_claim(make_claim(recipe, expected=Ordering(relations=("long@direct_3_turns > short",))), tmp_path)
    with pytest.raises(ConfigError, match="two different seeds"):
        run_claim(make_claim(recipe), tmp_path, seeds=[3, 3])
    with pytest.raises(ConfigError, match="did you mean 'budget'"):
        recipe.replace(budgt={"turns": 1})
    assert not list(tmp_path.iterdir())
