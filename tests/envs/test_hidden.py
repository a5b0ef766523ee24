"""Worlds with a hidden rule: what is hidden stays hidden, what is best earns most, and training shares no rule with
evaluation."""

import asyncio
import random
from statistics import fmean, pstdev
from typing import Any

import pytest

from longstride.core.errors import EnvFailure, TaskError
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.hidden import (
    Bandit,
    Bandits,
    Corridor,
    Corridors,
    DarkRoom,
    DarkRooms,
    GaussianBandit,
    GaussianBandits,
    GaussianLinearBandit,
    GaussianLinearBandits,
    LinearBandits,
)
from longstride.envs.hidden.base import HiddenEnv, HiddenWorlds, Rule, rule_of
from longstride.rollout.hidden import ShareOfMost

WORLDS: list[HiddenWorlds] = [
    Bandits(),
    GaussianBandits(),
    GaussianLinearBandits(),
    LinearBandits(dimensions=3),
    DarkRooms(),
    DarkRooms(size=10, turns=100, begins="corner", hidden="actions"),
    DarkRooms(turns=50, hidden="key"),
    Corridors(),
    Corridors(rooms=4, house=3),
]
every_world = pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w.type_name()}-{getattr(w, 'hidden', '')}")


def episode(env: HiddenEnv, task: Task, seed: int, choose: Any) -> tuple[Observation, list[Step]]:
    """Plays an episode to its end."""

    async def play() -> tuple[Observation, list[Step]]:
        first, steps = await env.reset(task, seed), list[Step]()
        while len(steps) < (task.horizon or 1) and not (steps and steps[-1].terminated):
            steps.append(await env.step(choose(env)))
        await env.close()
        return first, steps

    return asyncio.run(play())


@every_world
def test_who_knows_the_rule_earns_what_the_rule_says_is_most(world: HiddenWorlds) -> None:
    earned, most = 0.0, 0.0
    for k, task in enumerate(world.sample(random.Random(1), 60)):
        rule = rule_of(task)
        assert rule is not None
        _, steps = episode(world.env(), task, k, lambda env: env.best()[0])
        earned, most = earned + sum(step.reward for step in steps), most + rule.most
    by_chance = isinstance(world, Bandits)
    assert earned == pytest.approx(most, rel=0.1 if by_chance else 1e-9) and most > 0


@every_world
def test_any_choice_earns_less(world: HiddenWorlds) -> None:
    tasks, rng = world.sample(random.Random(2), 60), random.Random(3)
    played = [episode(world.env(), task, k, lambda env: rng.choice(env.choices()))[1] for k, task in enumerate(tasks)]
    most = sum(rule.most for task in tasks if (rule := rule_of(task)))
    assert sum(step.reward for steps in played for step in steps) < 0.7 * most


@every_world
def test_training_and_evaluation_share_no_rule(world: HiddenWorlds) -> None:
    train, test = (
        {t.template_id for t in tasks} for tasks in (world.sample(random.Random(0), 300), world.held_out(60))
    )
    assert train and test and not train & test
    assert all(task.split == "test" for task in world.held_out(9)) and world.held_out(3) == world.held_out(9)[:3]


@every_world
def test_what_is_read_is_the_same_whatever_the_rule_until_something_was_done(world: HiddenWorlds) -> None:
    """Of rules with the same rooms, sizes and arms."""
    tasks = world.sample(random.Random(4), 40)
    read = {(task.goal, episode(world.env(), task, 0, lambda env: env.choices()[0])[0].text) for task in tasks}
    if isinstance(world, Corridors):
        assert all(goal.split(" : ")[1].split(" , ")[0] == first for goal, first in read)
    else:
        assert len(read) == 1


@every_world
def test_an_episode_is_its_seed_s(world: HiddenWorlds) -> None:
    task = world.sample(random.Random(5), 1)[0]

    def rewards(seed: int) -> list[tuple[str, float]]:
        _, steps = episode(world.env(), task, seed, lambda env: env.choices()[0])
        return [(step.observation.text, step.reward) for step in steps]

    assert rewards(7) == rewards(7)


def test_what_is_no_choice_costs_a_turn_and_is_explained() -> None:
    task = Corridors().sample(random.Random(0), 1)[0]

    async def play() -> Step:
        env = Corridors().env()
        await env.reset(task, 0)
        return await env.step("Thought: hm Action: fly")

    step = asyncio.run(play())
    assert step.action is None and "use one of" in step.observation.text and not step.terminated
    assert step.observation.text.startswith(str(task.meta["rooms"][0]))


def test_an_action_may_follow_a_thought_as_everywhere() -> None:
    task = Bandits().sample(random.Random(0), 1)[0]
    _, steps = episode(Bandits().env(), task, 0, lambda env: "Thought: the second Action: B")
    assert {step.action for step in steps} == {"b"}


def test_a_dark_room_is_what_its_papers_have() -> None:
    room = DarkRoom(turns=4, size=3, begin=(0, 0), target=(1, 0))
    life = room.start(random.Random(0))
    assert [life.act(a) for a in ("west", "east", "stay", "north")] == [0.0, 1.0, 1.0, 0.0]
    assert life.look() == "1 1" and life.best() == ["south"] and room.most == 4.0
    permuted = room.model_copy(update={"order": 119}).start(random.Random(0))
    assert permuted.best() == ["stay"], "the last order turns the five around: staying goes east"


def test_the_door_opens_once_and_with_the_key_alone() -> None:
    room = DarkRoom(turns=9, size=3, begin=(1, 1), target=(0, 1), key_cell=(2, 1))
    life = room.start(random.Random(0))
    walk = ("west", "east", "east", "stay", "west", "west", "stay")
    assert [life.act(a) for a in walk] == [0, 0, 1, 0, 0, 1, 0] and room.most == 2.0


def test_regret_of_a_bandit_is_of_the_arms_and_not_of_their_luck() -> None:
    from helpers import make_trajectory, make_turn

    bandit = Bandit(turns=3, chances=(0.25, 0.75))
    turns = [make_turn(action=arm, reward=r) for arm, r in (("a", 1.0), ("b", 0.0), ("b", 1.0))]
    assert bandit.regret(make_trajectory(turns)) == 0.5
    corridor = Corridor(turns=2, rooms=("hall", "attic"), doors=("red", "blue"), way=(0, 1))
    assert corridor.regret(make_trajectory([make_turn(action="red", reward=0.0)])) == 1.0


def test_of_what_can_be_earned_an_episode_has_a_share_whatever_its_world_pays() -> None:
    from helpers import make_task, make_trajectory, make_turn

    def share(world: HiddenWorlds, rule: Rule, *turns: Any) -> float | None:
        task = world.sample(random.Random(0), 1)[0].model_copy(update={"meta": rule.model_dump(mode="json")})
        return ShareOfMost()(make_trajectory(list(turns), task=task))

    bandit = Bandit(turns=3, chances=(0.25, 0.75))
    arms = [make_turn(action=arm, reward=r) for arm, r in (("a", 1.0), ("b", 0.0), ("b", 1.0))]
    assert share(Bandits(), bandit, *arms) == pytest.approx(2 / 2.25)
    room = DarkRoom(turns=4, size=3, begin=(0, 0), target=(1, 0))
    assert share(DarkRooms(), room, make_turn(reward=1.0), make_turn(reward=1.0)) == 0.5
    corridor = Corridor(turns=1, rooms=("hall", "attic"), doors=("red", "blue"), way=(0, 1))
    assert share(Corridors(), corridor, make_turn(action="red")) is None, "nothing can be earned in so few turns"
    assert ShareOfMost()(make_trajectory(1, task=make_task())) is None


def test_an_arm_with_gaussian_noise_pays_around_its_mean_in_hundredths() -> None:
    life = GaussianBandit(turns=3, chances=(0.25, 0.75), deviation=0.3).start(random.Random(0))
    paid = [life.act("b") for _ in range(4000)]
    assert fmean(paid) == pytest.approx(0.75, abs=0.02) and pstdev(paid) == pytest.approx(0.3, abs=0.01)
    assert all(x == round(x, 2) for x in paid) and min(paid) < 0 and max(paid) > 1
    task = GaussianBandits(arms=3, deviation=1.5).sample(random.Random(0), 1)[0]
    assert len(task.meta["chances"]) == 3 and task.meta["deviation"] == 1.5


def test_arms_of_a_linear_bandit_say_something_of_each_other() -> None:
    world = LinearBandits()
    first, second = (Bandit.model_validate(t.meta) for t in world.sample(random.Random(0), 2))
    assert first.features == second.features and first.chances != second.chances
    x, y = first.features[0]
    assert x * x + y * y == pytest.approx(1, abs=1e-3) and all(0 <= c <= 1 for c in first.chances)


def test_gaussian_linear_bandits_are_drawn_as_those_of_their_authors() -> None:
    """A feature and theta have variances of 1 over the dimensions, so means, over draws of both, have that too."""
    rules = [
        GaussianLinearBandit.model_validate(task.meta)
        for seed in range(40)
        for task in GaussianLinearBandits(seed=seed, dimensions=4).sample(random.Random(seed), 20)
    ]
    means = [mean for rule in rules for mean in rule.chances]
    assert fmean(means) == pytest.approx(0, abs=0.05) and pstdev(means) == pytest.approx(0.5, abs=0.05)
    assert min(means) < 0 and max(means) > 1
    noise = [rule.start(random.Random(k)).act("a") - rule.chances[0] for k, rule in enumerate(rules)]
    assert fmean(noise) == pytest.approx(0, abs=0.03) and pstdev(noise) == pytest.approx(0.3, abs=0.03)
    assert len({rule.features for rule in rules}) == 40, "features are the world's, and not the task's"


@pytest.mark.parametrize(
    ("source", "meta", "says"),
    [
        (Bandits(), {"turns": 3, "chances": [0.5]}, "chances"),
        (Bandits(), {"turns": 3, "chances": [0.5, 2.0]}, "chances"),
        (DarkRooms(), {"turns": 3, "size": 3, "begin": [0, 0], "target": [3, 0]}, "size 3"),
        (Corridors(), {"turns": 1, "rooms": ["hall"], "doors": ["red", "blue"], "way": [2]}, "below 2"),
    ],
)
def test_a_task_whose_rule_does_not_fit_says_so(source: HiddenWorlds, meta: dict[str, Any], says: str) -> None:
    task = source.sample(random.Random(0), 1)[0].model_copy(update={"meta": meta})
    with pytest.raises(EnvFailure, match=says):
        asyncio.run(source.env().reset(task, 0))


class OneRule(Corridors):
    """A world of a single rule."""

    def make(self, rng: random.Random) -> Corridor:
        return Corridor(turns=2, rooms=("hall", "attic"), doors=("red", "blue"), way=(0, 1))


def test_a_world_too_small_for_two_splits_is_refused() -> None:
    world = OneRule()
    lacking = world.sample if world.make(random.Random(0)).split == "test" else lambda rng, n: world.held_out(n)
    with pytest.raises(TaskError, match="too few different rules"):
        lacking(random.Random(0), 1)


def test_in_a_house_each_room_has_one_door_that_leads_on_and_hints_say_which() -> None:
    house = Corridors(rooms=4, doors=3, house=3)
    told = [house.hint(task).split(" , ") for task in [*house.sample(random.Random(0), 40), *house.held_out(10)]]
    assert len({pair for pairs in told for pair in pairs}) == 10, "as many as there are rooms"
    other = house.replace(house=4)
    assert {other.hint(task) for task in other.held_out(9)}.isdisjoint(house.hint(task) for task in house.held_out(9))
    (task,) = Corridors(rooms=3).sample(random.Random(0), 1)
    rooms = task.goal.split(" : ")[1].split(" ; ")[0].split(" , ")
    said = [pair.split() for pair in Corridors().hint(task).split(" , ")]
    assert said == [[room, door] for room, door in zip(rooms, Corridors().demonstrate(task), strict=True)]
    doors = iter(Corridors().demonstrate(task))
    _, steps = episode(Corridors().env(), task, 0, lambda env: next(doors))
    assert steps[-1].reward == 1
