"""TRIM on language models: what routers decide of what they see, what a router learns, and two models that share
solutions."""

from math import exp
from pathlib import Path

import numpy as np
import pytest
from bigrams import bigram_policy
from helpers import rows_of

from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.exact.worlds.routing import Routed, said
from longstride.models.load import save_policy
from longstride.papers.trim.exact import routed
from longstride.papers.trim.method import (
    FEATURES,
    Belief,
    LearnedSteps,
    Logistic,
    RoutedSteps,
    Routes,
    Threshold,
    features,
    fitted,
    improved,
    learned,
)
from longstride.papers.trim.recipe import RECIPE, STEPS
from longstride.run.evaluation import evaluate_policy
from longstride.run.recipe import Recipe
from longstride.strategies.delegate import StepTaken

PAST = (StepTaken(0.9, 5, False, 0.9), StepTaken(0.2, 4, True, 0.6))


def test_a_learned_router_sees_the_least_and_the_product_of_what_was_kept() -> None:
    assert dict(zip(FEATURES, features(PAST, 0.3, 7), strict=True)) == pytest.approx(
        {"least score before": 0.6, "product of scores before": 0.54, "score": 0.3, "tokens": 0.07, "step": 2 / 30}
    )
    assert features((), np.array([0.3, 0.4]), 7)[:, :2].tolist() == [[1, 1], [1, 1]]


def test_routers_say_for_certain_what_they_do_unless_they_explore() -> None:
    assert Threshold(below=0.3).chance((), np.array([0.29, 0.3]), 0).tolist() == [1, 0]
    router = Logistic(weights=(0, 0, -10, 0, 0, 4))
    assert router.chance(PAST, 0.3, 0) == 1 and router.chance(PAST, 0.5, 0) == 0
    assert router.replace(explores=True).chance(PAST, 0.3, 0) == pytest.approx(1 / (1 + exp(-1)))


def test_a_belief_gives_up_what_is_lost_and_saves_what_has_just_gone_wrong() -> None:
    belief = Belief(weak=0.6, strong=0.95, noise=0.3, length=6, price=0.1)
    assert belief.chance(PAST[:1], 0.01, 0) == 1
    lost = (StepTaken(0.01, 0, False, 0.01),)
    assert belief.chance(lost, 0.01, 0) == 0 and belief.chance(PAST[:1], 0.99, 0) == 0


def test_a_belief_is_fitted_to_a_scorer_whose_odds_are_stretched_and_shifted() -> None:
    rng = np.random.default_rng(0)
    right = rng.random(40_000) < 0.3
    odds = np.log(1 / (1 / said(right, rng.normal(size=len(right)), 1.5) - 1))
    stretched = 1 / (1 + np.exp(-(odds / 2 - 0.7)))
    found = fitted(stretched.tolist(), right.tolist(), weak=0.5, strong=0.9, length=6, price=0.1)
    # odds = 2 (stretched + 0.7)
    assert (found.scale, found.shift, found.noise) == pytest.approx((2.0, 1.4, 1.5), abs=0.08)
    with pytest.raises(ConfigError, match="the scores are no higher where solutions are right"):
        fitted([0.9, 0.8, 0.3, 0.2], [False, False, True, True], weak=0.5, strong=0.9, length=6, price=0.1)
    with pytest.raises(ConfigError, match="right and of wrong solutions"):
        fitted([0.9, 0.8], [True, True], weak=0.5, strong=0.9, length=6, price=0.1)


def test_the_step_of_a_router_is_the_gradient_of_its_worth() -> None:
    """Both choices at one step, as often as they are drawn; again is worth 1, keeping -1."""
    router, seen = Logistic(weights=(0.1, 0.2, -0.3, 0.4, 0.5, 0.2)), np.array([[0.6, 0.5, 0.3, 0.1, 0.2]])
    p = float(router.drawn(seen)[0])
    times = round(1000 * p)
    played = [
        Routes(seen, np.array([again]), 2 * again - 1)
        for again, n in ((1.0, times), (0.0, 1000 - times))
        for _ in range(n)
    ]
    moved = np.array(improved(router, played, rate=1.0).weights) - router.weights
    # d/dw of 2 p - 1 is 2 p (1 - p) (features, 1); the worth has a deviation of 2 sqrt(p (1 - p))
    slope = 2 * p * (1 - p) * np.append(seen[0], 1) / (2 * np.sqrt(p * (1 - p)))
    assert moved == pytest.approx(slope, abs=2e-3)
    assert improved(router, [], rate=1.0) == router


def test_a_router_that_learned_pays_where_it_is_worth_it() -> None:
    """In the exact world: more worth than never and always asking, and than where it began."""
    price, length, chances = 0.06, 6, (0.7, 0.95)

    def worth(router: Logistic | Threshold, seed: int) -> tuple[list[Routes], float]:
        rng = np.random.default_rng(seed)
        tasks = Routed(chances, 0.7, 400, rng)
        past = routed(router, length, tasks, rng)
        worth_N = tasks.right_N - price * tasks.strong_N
        seen_TNF = [features(past[:k], taken.tried, 0) for k, taken in enumerate(past)]
        played = [
            Routes(np.array([of[n] for of in seen_TNF]), np.array([t.again[n] for t in past], float), float(worth_N[n]))
            for n in range(400)
        ]
        return played, float(worth_N.mean())

    router = Logistic(explores=True)
    for k in range(60):
        router = improved(router, worth(router, k)[0], rate=2.0)
    found = worth(router.replace(explores=False), 999)[1]
    assert found > max(worth(Threshold(below=b), 999)[1] for b in (0.0, 1.0)) + 0.1
    assert found > worth(Logistic(explores=True), 999)[1] + 0.1


WORDS = "go now Thought: red blue ; Action: answer lamp home"
THINKS = {"<agent>": {"Thought:": 1.0}, "Action:": {"answer": 1.0}, "answer": {"now": 1.0}, ";": {"Action:": 1.0}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two GPT-NeoX models of one vocabulary: the weak one thinks of either colour, of which it is half sure, the strong
    one of red alone."""
    for name, says in (("weak", {"red": 0.5, "blue": 0.5}), ("strong", {"red": 1.0})):
        follows = THINKS | {"Thought:": says, "red": {";": 1.0}, "blue": {";": 1.0}}
        save_policy(bigram_policy(WORDS, follows), tmp_path / name)
    return tmp_path


def own(home: Path, *settings: str) -> Recipe:
    few = [
        "tasks.type=one_page:OnePageTasks",
        "evaluation.tasks=8",
        "learner.epochs=0",
        "cloning=",
        "model=" + str(home / "weak"),
    ]
    return resolve(Recipe, RECIPE, [*few, *settings])


def test_two_other_models_share_solutions_by_settings_alone(home: Path) -> None:
    strategy = "longstride.papers.trim.method:RoutedSteps"
    recipe = own(
        home,
        f"evaluation.strategies=[{{type='{strategy}', model='{home / 'strong'}', router={{type='longstride.papers.trim.method:Threshold', below=0.9}}}}]",
    )
    recipe.train(home / "run")
    row = rows_of(home / "run", "eval")[-1]
    assert row["strategy"].startswith("routed_steps_step_below_0.9_by_confidence_to_")
    # Thought: red ; has a mean probability below 0.9 and is handed over, Action: answer now is certain
    assert row["measures"]["steps"] == [2.0] * 8 and row["measures"]["handed_over"] == [1.0] * 8
    assert row["measures"]["worth"] == pytest.approx([-3 * 8e-4] * 8)


def test_the_policy_may_be_the_strong_one(home: Path) -> None:
    strong = bigram_policy(WORDS, THINKS | {"Thought:": {"red": 1.0}, "red": {";": 1.0}})
    strategy = STEPS.replace(model=str(home / "weak"), guide={"type": "confidence"}, router={"below": 0.9})
    found = evaluate_policy(strong, own(home), strategy=strategy)
    assert {t.turns[0].text for t in found.trajectories} == {"Thought: red ; Action: answer now"}
    assert found.measures["handed_over"] == [1.0] * 8
    assert strategy.replace(weak="policy").name != strategy.name
    with pytest.raises(ConfigError, match="weak=model needs a model that can be loaded here"):
        strategy.replace(model={"url": "http://127.0.0.1:1", "name": "m"})


def test_a_router_learns_by_playing_training_tasks(home: Path) -> None:
    """Nothing is ever solved here, so that all that there is to learn is what the strong model costs."""
    from longstride.models.load import load_policy

    strategy = RoutedSteps(model=str(home / "strong"), per_token=0.1)
    router = learned(load_policy(str(home / "weak")), own(home), strategy, rounds=3, tasks=16, rate=4.0)
    assert router.weights[-1] < -0.5 and not router.explores
    found = evaluate_policy(load_policy(str(home / "weak")), own(home), strategy=strategy.replace(router=router))
    assert found.measures["handed_over"] == [0.0] * 8


@pytest.mark.parametrize(("price", "handed"), [(1e-4, True), (1.0, False)])
def test_a_router_that_learned_on_the_other_half_of_the_tasks_pays_where_it_is_worth_it(
    tmp_path: Path, price: float, handed: bool
) -> None:
    """A task is solved by red, which the strong model always says, and the weak one half of the time."""
    then = {"red": {";": 1.0}, "blue": {";": 1.0}, "answer": {"go": 1.0}, "go": {"now": 1.0}}
    save_policy(bigram_policy(WORDS, THINKS | then | {"Thought:": {"red": 1.0}}), tmp_path / "strong")
    strategy = f"type='longstride.papers.trim.method:LearnedSteps', model='{tmp_path / 'strong'}', per_token={price}"
    recipe = own(tmp_path, f"evaluation.strategies=[{{{strategy}, rounds=8, rate=3}}]", "evaluation.tasks=40")
    (learns,) = recipe.evaluation.strategies
    weak = bigram_policy(WORDS, THINKS | then | {"Thought:": {"red": 0.5, "blue": 0.5}})
    measures = evaluate_policy(weak, recipe, strategy=learns).measures
    again, solved, took = (np.array(measures[name], float) for name in ("handed_over", "success", "learning_tokens"))
    assert again.min() >= 1 if handed else again.max() == 0
    assert (solved.mean() == 1) == handed
    assert len(set(took)) == 2 and took.min() > 8 * 7  # of each half; a solution has more than seven tokens


def test_what_counts_on_a_half_was_learned_on_the_other_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longstride.papers.trim import method

    taught: list[set[str]] = []

    def noted(router: Logistic, played: list[Routes], rate: float) -> Logistic:
        return router.replace(weights=(0.0,) * 5 + (float(len(taught)),))

    monkeypatch.setattr(
        method.Routes, "of_all", lambda found: taught.append({e.trajectory.task.id for e in found}) or []
    )
    monkeypatch.setattr(method, "improved", noted)
    strategy = LearnedSteps(model=str(home / "strong"), rounds=1)
    found = evaluate_policy(bigram_policy(WORDS, THINKS), own(home), strategy=strategy)
    first, second = taught
    assert first.isdisjoint(second) and first | second == {t.task.id for t in found.trajectories}
