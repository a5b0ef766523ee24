"""Multi-turn GRPO on the embedded sites: what each page makes of the same episodes, by hand, and a few iterations for
real."""

import json

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.config import resolve
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.models.load import load_policy
from longstride.recipes import asyncwebrl, scaling_inter, webagent_r1
from longstride.rollout.context import KeepLast
from longstride.run.loop import train
from longstride.run.recipe import Recipe

PAGES = {page.RECIPE.name: page.RECIPE for page in (asyncwebrl, scaling_inter, webagent_r1)}
EPISODES = [(0, 0, [2, 4, 6]), (0, 1, [3]), (2, 0, [5]), (2, 0, [5])]
"""Group, reward and the sampled tokens of each turn: a long failure beside a short success, and two failures."""
BY_HAND = {
    # constant k = 8, mean over all tokens of groups that are mixed
    "asyncwebrl": [-1 / 8 / 15] * 3 + [1 / 8 / 15],
    "scaling_inter": [-1 / 25] * 3 + [1 / 25, 0, 0],
    # an episode's advantage is shared among its turns, a turn's among its tokens, and six turns are a mean
    "webagent_r1": [-1 / 3 / 2 / 6, -1 / 3 / 4 / 6, -1 / 3 / 6 / 6, 1 / 3 / 6, 0, 0],
}
"""What a token of each trained turn weighs in the loss of a step that holds all episodes."""


def episodes() -> list[Trajectory]:
    task = Task(id="t", source="s", goal="g", start="s")
    found = []
    for n, (group, reward, tokens) in enumerate(EPISODES):
        turns = [Turn([1], [2] * k, [-1.0] * k, [0] * k, "", "text") for k in tokens]
        found.append(Trajectory(task, n, 0, Budget(), turns, StopReason.ENV_ENDED, reward=reward, group=group))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_each_page_weighs_tokens_as_its_paper_says(name: str) -> None:
    recipe = PAGES[name]
    samples = recipe.credit(episodes())
    shares, denominator = recipe.loss.aggregation(samples)
    for sample, share, by_hand in zip(samples, shares, BY_HAND[name], strict=True):
        weights = [w * share / denominator for w in sample.weights]
        assert weights == pytest.approx([by_hand] * len(sample.sampled_ids))


def test_webagent_r1_has_the_gradient_of_its_paper_up_to_the_mean_number_of_turns() -> None:
    """1/G sum_i 1/|tau_i| sum_j 1/|a_ij| sum_t A_i, written out."""
    played = episodes()
    paper = [
        advantage / len(played) / t.length / len(turn.sampled_ids)
        for t, advantage in zip(played, (-1, 1, 0, 0), strict=True)
        for turn in t.turns
    ]
    mean_turns = sum(t.length for t in played) / len(played)
    assert BY_HAND["webagent_r1"] == pytest.approx([w / mean_turns for w in paper])


def test_scaling_inter_goes_through_all_its_stages() -> None:
    recipe = scaling_inter.RECIPE
    turns = [recipe.horizon.at(i, "hard") for i in range(1, recipe.iterations + 1)]
    assert sorted(set(turns)) == sorted(turns[:: recipe.iterations // 3]) == [8, 16, 24]


def run_of(recipe: Recipe, folder, *overrides: str) -> list[dict]:
    small = ("episodes=16", "group=4", "evaluation.tasks=4", "evaluation.baselines=false", "evaluation.every=9")
    train(resolve(Recipe, recipe, [*small, *overrides]), folder)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_asyncwebrl_gets_two_versions_behind_and_no_further(tmp_path) -> None:
    rows = run_of(asyncwebrl.RECIPE, tmp_path / "run", "iterations=3")
    assert max(r["staleness_max"] for r in rows if r["kind"] == "train") == 2


def test_webagent_r1_reads_one_page_and_all_that_it_said(tmp_path) -> None:
    run_of(webagent_r1.RECIPE, tmp_path / "run", "iterations=1", "horizon.limit=4")
    chat = load_policy(webagent_r1.RECIPE.model).chat
    played = [Trajectory.from_json(line) for line in (tmp_path / "run" / "trajectories.jsonl").read_text().splitlines()]
    assert max(t.length for t in played) > 2
    for t in played:
        whole = KeepLast().render(
            chat, t.task.goal, [u.observation for u in t.turns], [u.sampled_ids for u in t.turns[:-1]]
        )
        assert t.turns[-1].prompt_ids == whole
