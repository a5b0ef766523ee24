"""Multi-turn GRPO on the embedded sites: what each recipe makes of the same episodes, by hand, and an iteration for
real."""

from typing import Any

import pytest
from helpers import make_trajectory, make_turn, rows_of, trajectories_of

from longstride.core.trajectory import Trajectory, by_group
from longstride.models.load import load_policy
from longstride.papers.asyncwebrl import recipe as asyncwebrl
from longstride.papers.scaling_inter import recipe as scaling_inter
from longstride.papers.webagent_r1 import recipe as webagent_r1
from longstride.rollout.context import Past, RecentObservations
from longstride.run.recipe import Recipe

RECIPES = {recipe.name: recipe for recipe in (m.RECIPE for m in (asyncwebrl, scaling_inter, webagent_r1))}
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
    return [
        make_trajectory([make_turn([2] * k) for k in tokens], reward, ordinal=n, group=group)
        for n, (group, reward, tokens) in enumerate(EPISODES)
    ]


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_weighs_tokens_as_its_paper_says(name: str):
    recipe = RECIPES[name]
    trained = [t for group in by_group(episodes()) if recipe.replay.teaches(group) for t in group]
    samples = recipe.credit(trained)
    shares, denominator = recipe.loss.aggregation(samples)
    for sample, share, by_hand in zip(samples, shares, BY_HAND[name], strict=True):
        weights = [a * share / denominator for a in sample.advantages]
        assert weights == pytest.approx([by_hand] * len(sample.sampled_ids))


def test_webagent_r1_has_the_gradient_of_its_paper_up_to_the_mean_number_of_turns():
    """1/G sum_i 1/|tau_i| sum_j 1/|a_ij| sum_t A_i, written out."""
    played = episodes()
    paper = [
        advantage / len(played) / t.length / len(turn.sampled_ids)
        for t, advantage in zip(played, (-1, 1, 0, 0), strict=True)
        for turn in t.turns
    ]
    mean_turns = sum(t.length for t in played) / len(played)
    assert BY_HAND["webagent_r1"] == pytest.approx([w / mean_turns for w in paper])


def test_scaling_inter_goes_through_all_its_stages():
    recipe = scaling_inter.RECIPE
    turns = [recipe.budget.at(i, "hard").turns for i in range(1, recipe.iterations + 1)]
    assert sorted(set(turns)) == sorted(turns[:: recipe.iterations // 3]) == [8, 16, 24]


def train(recipe: Recipe, folder: Any, **changes: Any) -> None:
    evaluation = {"tasks": 2, "baselines": False, "every": 9}
    recipe.replace(episodes_per_iteration=8, group_size=4, evaluation=evaluation, **changes).train(folder)


def test_asyncwebrl_gets_two_versions_behind_and_no_further(tmp_path):
    train(asyncwebrl.RECIPE, tmp_path / "run", iterations=3, budget={"turns": 3}, test_budget={"turns": 2})
    assert max(row["staleness_max"] for row in rows_of(tmp_path / "run", "train")) == 2


def test_webagent_r1_reads_one_page_and_all_that_it_sampled(tmp_path):
    train(webagent_r1.RECIPE, tmp_path / "run", iterations=1, budget={"turns": 4}, test_budget={"turns": 2})
    chat, played = load_policy(str(webagent_r1.RECIPE.model)).chat, trajectories_of(tmp_path / "run")
    assert max(t.length for t in played) > 2
    for t in played:
        observations, sampled = [u.observation for u in t.turns], [u.sampled_ids for u in t.turns[:-1]]
        expected = RecentObservations().render(chat, Past(t.task.goal, observations, sampled))
        assert t.turns[-1].prompt_ids == expected
