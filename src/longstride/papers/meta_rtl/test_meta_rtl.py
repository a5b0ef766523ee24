"""Meta-RTL: preferences by hand, a bandit that finds the source that helps, the outer step, and a model and tasks of one's
own."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from elsewhere import train_elsewhere
from helpers import Collected, make_planner, make_trajectory, make_turn, rows_of, tiny_model, trajectories_of, word_chat

from longstride.core.content import Media
from longstride.core.errors import ConfigError, RunError
from longstride.envs.levels import Environments, Ladder
from longstride.envs.puzzles import Countdown, ModularChain
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import Reinforce
from longstride.methods.base import demonstration
from longstride.papers.meta_rtl.method import WeightedSources
from longstride.papers.meta_rtl.recipe import CLAIM, TARGET

CHAIN, OTHER = (ModularChain(lengths=(1, 1, 1)),), (Countdown(numbers=(2, 2, 2)),)
TASKS = Environments(
    environments=(Ladder(name="t", levels=CHAIN), Ladder(name="a", levels=CHAIN), Ladder(name="b", levels=OTHER))
)


class Taught(Collected):
    """An experience whose loss on target tasks falls by what the source that was drawn last is worth."""

    loss = 5.0

    def openings(self, tasks):
        return [make_trajectory([make_turn([], [0, k])], task=task) for k, task in enumerate(tasks)]

    def logprobs(self, samples):
        assert all(s.prompt_ids[0] == 0 and s.sampled_ids for s in samples)
        return [[-self.loss] * len(s.sampled_ids) for s in samples]


CHAT = word_chat("Thought: Action: answer start ; + - * ≡ 0 1 2 3 4 5 6 mod")


def drawn_by(sampler: WeightedSources, worth: dict[str, float], iterations: int) -> tuple[list[str], dict[str, Any]]:
    """The sources that were drawn, and what is kept."""
    past, found = Taught(), []
    for iteration in range(1, iterations + 1):
        planner = make_planner(TASKS, iteration, 8 * iteration, episodes=8, size=4, experience=past, chat=CHAT)
        plans = list(next(sampler.plan(planner)))
        (name,) = {plan.task.source.partition("/")[0] for plan in plans}
        found.append(name)
        past.loss -= worth[name] + 0.01 * random.Random(iteration).gauss(0, 1)
    return found, past.kept["weighted_sources"]


def test_target_tasks_are_read_with_their_images_and_that_none_can_be_opened_is_said() -> None:
    image = Media(b"an image")

    class Seen(Taught):
        def openings(self, tasks):
            return [make_trajectory([make_turn([], [0], media=(image,))], task=task) for task in tasks]

        def logprobs(self, samples):
            assert all(s.media == (image,) for s in samples)
            return super().logprobs(samples)

    class Shut(Taught):
        def openings(self, tasks):
            return [make_trajectory(0, task=task, evidence={"failure": "no browser"}) for task in tasks]

    sampler = WeightedSources(target="t")
    assert next(sampler.plan(make_planner(TASKS, experience=Seen(), chat=CHAT)))
    with pytest.raises(RunError, match="none of the 16 tasks of 't' could be opened.*no browser"):
        next(sampler.plan(make_planner(TASKS, experience=Shut(), chat=CHAT)))


def test_a_preference_moves_by_rate_times_gain_in_deviations_times_what_a_draw_differs_from_its_chance() -> None:
    sampler = WeightedSources(target="t", rate=0.5, floor=0.2)
    memory: dict[str, Any] = {"preferences": {"a": 0.0, "b": 0.0}, "gains": [0.1, 0.3], "drawn": "a"}
    sampler.learn(memory, 0.25)  # mean .2, deviation .1: half a deviation
    assert memory["preferences"] == pytest.approx({"a": 0.5 * 0.5 * 0.5, "b": -0.5 * 0.5 * 0.5})
    assert memory["gains"] == [0.1, 0.3, 0.25]
    p = 1 / (1 + 2.718281828**-0.25)
    assert sampler.chances(memory["preferences"]) == pytest.approx({"a": 0.1 + 0.8 * p, "b": 0.1 + 0.8 * (1 - p)})
    memory["gains"] = [0.0, 0.1]
    sampler.learn(memory, 100.0)  # counts as two deviations
    assert memory["preferences"]["a"] == pytest.approx(0.125 + 0.5 * 2 * (1 - 0.1 - 0.8 * p))


def test_the_source_that_lowers_the_targets_loss_is_drawn_more_and_of_sources_alike_neither() -> None:
    names, kept = drawn_by(WeightedSources(target="t"), {"a": 0.1, "b": 0.0}, 60)
    assert "t" not in names and Counter(names[30:])["a"] >= 24
    assert kept["preferences"]["a"] > 1 and len(kept["gains"]) == 59
    assert [task["source"] for task in kept["examples"]] == ["t/0/puzzles/modular_chain"] * 16
    alike, _ = drawn_by(WeightedSources(target="t", floor=1.0), {"a": 0.1, "b": 0.0}, 60)
    assert 15 <= Counter(alike)["a"] <= 45


def test_the_first_gains_say_what_is_usual_and_move_nothing() -> None:
    _, kept = drawn_by(WeightedSources(target="t"), {"a": 0.1, "b": 0.0}, 3)
    assert kept["preferences"] == {"a": 0.0, "b": 0.0} and len(kept["gains"]) == 2


@pytest.mark.parametrize("target", ["nowhere", ""])
def test_a_target_that_is_no_environment_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match=f"one of several environments, .* got '{target}' and tasks t, a, b; take"):
        next(WeightedSources(target=target).plan(make_planner(TASKS)))


def test_an_outer_step_goes_a_part_of_the_way() -> None:
    def trained(config: LearnerConfig) -> tuple[torch.Tensor, torch.Tensor]:
        model = tiny_model(seed=1)
        before = torch.cat([p.detach().flatten() for p in model.parameters()])
        samples = [demonstration([1, 2], [3, 4]), demonstration([2], [5])]
        Learner(model, config, Reinforce()).update(samples, random.Random(0))
        return before, torch.cat([p.detach().flatten() for p in model.parameters()])

    numbers: dict[str, Any] = {"lr": 1e-2, "warmup_steps": 0, "dtype": "float32", "epochs": 3}
    before, whole = trained(LearnerConfig(**numbers))
    _, part = trained(LearnerConfig(outer=0.25, **numbers))
    torch.testing.assert_close(part, before + 0.25 * (whole - before))
    assert (whole - before).abs().max() > 1e-3


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    own = ",".join(f'{{name="{name}",levels=[{{type="one_page:OnePageTasks"}}]}}' for name in ("t", "a", "b"))
    run = train_elsewhere(
        "meta_rtl", tmp_path, "tasks.type=environments", f"tasks.environments=[{own}]", 'tasks.tested=["t"]',
        "sampler.target=t", "sampler.examples=2", "learner.outer=0.5", "iterations=4",
    )  # fmt: skip
    names = [{t.task.source[0] for t in trajectories_of(run) if t.iteration == i} for i in (1, 2, 3, 4)]
    assert all(len(each) == 1 and each <= {"a", "b"} for each in names)
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    assert {name for row in rows_of(run, "eval") for name in row["summary"]["by_source"]} == {"t/0/one_page"}


def test_arms_differ_in_how_sources_are_drawn_and_in_which_there_are() -> None:
    assert list(CLAIM.changes("alike")) == ["sampler.floor"] and list(CLAIM.changes("inner")) == ["learner.outer"]
    for arm in CLAIM.arms.values():
        data = arm.as_data()
        assert data["sampler"]["target"] == TARGET and list(data["tasks"]["tested"]) == [TARGET]
