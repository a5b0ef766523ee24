"""Runs side by side: each has the numbers that it has alone, whatever its agent is made of, and goes on as if alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from control_recipe import RECIPE
from helpers import rows_of

from longstride.control import (
    AWR,
    DQN,
    GRU,
    SAC,
    TD3,
    BehaviourCloning,
    BestOfN,
    BinsPolicy,
    BoxPolicy,
    CategoricalPolicy,
    Conservative,
    ControlAgent,
    ControlRecipe,
    DeterministicPolicy,
    FlowPolicy,
    FurtherCritic,
    GaussianPolicy,
    Given,
    Greedy,
    ImplicitQ,
    ImplicitV,
    LambdaReturns,
    Level,
    NormalPolicy,
    NStep,
    PointMaze,
    Proximal,
    Relabelled,
    TDCritic,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.envs import Spec
from longstride.control.envs.pointmaze import PointMazeEnv
from longstride.control.learner import AHEAD, ControlLearner, act_together, train_together
from longstride.control.noise import RunNoise
from longstride.models.heads import BCE, Atoms, HLGauss, Quantiles
from longstride.models.mlp import Trunk
from longstride.papers.brc.method import BroNet, CategoricalReturns, NormalisedReturns
from longstride.papers.dasco.method import Adversarial, Supported
from longstride.papers.density_weighting.method import DensityRatio
from longstride.papers.dsac_t.method import GaussianReturns
from longstride.papers.dsrl.method import LatentSAC, NoiseAliased, SteeredFlow
from longstride.papers.dual_rl.method import ReCOIL
from longstride.papers.floq.method import FlowReturns
from longstride.papers.hiql.recipe import hiql
from longstride.papers.pa_rl.method import ActionSearch, Optimised, SearchedTD
from longstride.papers.q_transformer.method import CoordinateQ, GreedyByCoordinate
from longstride.papers.reds.method import Reweighted
from longstride.papers.saq.method import VQCodes
from longstride.papers.saw.method import Waypoint
from longstride.papers.scaled_ql.method import Scaled
from longstride.papers.sharsa.method import Sarsa, SubgoalAhead
from longstride.papers.trajectory_weighting.method import ByReturn
from longstride.papers.v_gps.method import ReRanked
from longstride.run.listener import Listener, Silent
from longstride.run.many import train_all

SMALL = Trunk(width=8, depth=1)
MAZE = PointMaze(maze="umaze", walks="reach", episodes=4, length=40)
SEEDS = (3, 8, 5)
RATES = (1.0, 0.1, 0.5)
"""Learning rates of the runs, as shares of the agent's."""
TOLERANCE = 1e-5
"""By which weights may differ after `UPDATES` updates: products of many matrices are not rounded as one is."""
UPDATES = AHEAD + 2
GAUSSIAN, FLOW = GaussianPolicy(trunk=SMALL), FlowPolicy(trunk=SMALL, steps=3)
DATA = NStep(goals=Given())
SEARCH = ActionSearch(samples=3, kept=2, steps=1)
FLOQ = Level(
    data=DATA,
    critic=FlowReturns(trunk=SMALL, seen=HLGauss(bins=5), noises=2, steps=2),
    policy=GAUSSIAN,
    extraction=SAC(),
)
BRC = CategoricalReturns(trunk=BroNet(width=8, depth=1), head=Atoms(count=7), embedding=3)
LEVELS = {
    "sac": Level(
        data=DATA,
        critic=TDCritic(trunk=SMALL, target_range=(0, 1)),
        policy=GAUSSIAN,
        extraction=SAC(alpha=1, soft=True),
    ),
    "cql": Level(
        data=DATA,
        critic=TDCritic(trunk=SMALL, conservative=Conservative(actions=2, calibrated=True), best_of=3),
        policy=GAUSSIAN,
        extraction=SAC(),
    ),
    "reds": Level(
        data=DATA,
        critic=Reweighted(trunk=SMALL, conservative=Conservative(actions=2), rho=GAUSSIAN),
        policy=GAUSSIAN,
        extraction=SAC(),
    ),
    "dasco": Level(
        data=DATA, critic=Adversarial(trunk=SMALL, generator=GAUSSIAN), policy=GAUSSIAN, extraction=Supported()
    ),
    "redq": Level(
        data=NStep(goals=Relabelled(), steps=3),
        policy_goals=Relabelled(geometric=0.9),
        critic=TDCritic(trunk=SMALL, head=BCE(), ensemble=4, subset=2, reduction="mean"),
        policy=GAUSSIAN,
        extraction=SAC(),
    ),
    "histogram": Level(
        data=DATA, critic=TDCritic(trunk=SMALL, head=HLGauss(bins=11)), policy=FLOW, extraction=BestOfN(samples=3)
    ),
    "quantiles": Level(
        data=DATA,
        critic=TDCritic(trunk=SMALL.replace(norm=False), head=Quantiles(count=5), best_of=2),
        further={"far": FurtherCritic(critic=Sarsa(trunk=SMALL), data=DATA.replace(discount=0.999), weight=0.5)},
        policy=GAUSSIAN,
        extraction=ReRanked(samples=3),
    ),
    "pa_rl": Level(
        data=DATA,
        critic=SearchedTD(trunk=SMALL, conservative=Conservative(actions=2, importance=False), search=SEARCH),
        policy=BinsPolicy(trunk=SMALL, bins=5),
        extraction=Optimised(search=SEARCH),
    ),
    "dsrl": Level(
        data=DATA,
        critic=NoiseAliased(trunk=SMALL),
        policy=SteeredFlow(trunk=SMALL, steps=2, steering=GAUSSIAN),
        extraction=LatentSAC(),
    ),
    "q_transformer": Level(
        data=DATA,
        critic=CoordinateQ(trunk=SMALL, bins=5, ensemble=2),
        policy=BoxPolicy(),
        extraction=GreedyByCoordinate(),
    ),
    "saq": Level(
        data=DATA,
        codes=VQCodes(count=4, size=3, trunk=SMALL),
        critic=DQN(trunk=SMALL, gap=0.5),
        policy=CategoricalPolicy(trunk=SMALL),
        extraction=Greedy(),
    ),
    "saw": Level(
        data=NStep(goals=Relabelled(current=0.2, future=0.8)),
        policy_goals=Relabelled(geometric=0.9),
        critic=ImplicitV(trunk=SMALL),
        policy=DeterministicPolicy(trunk=SMALL),
        extraction=Waypoint(steps=5),
    ),
    "chunks": Level(
        data=NStep(goals=Relabelled(), action="chunk", steps=4), policy=FLOW, extraction=BehaviourCloning()
    ),
    "td3": Level(
        data=DATA,
        critic=TDCritic(trunk=SMALL, followed="first"),
        policy=DeterministicPolicy(trunk=SMALL),
        extraction=TD3(q_weight=2.5),
    ),
    "dsac_t": Level(
        data=DATA, critic=GaussianReturns(trunk=SMALL), policy=GAUSSIAN, extraction=SAC(temperature=0.1, tau=0.1)
    ),
    "ppo": Level(data=DATA, critic=LambdaReturns(trunk=SMALL), policy=GAUSSIAN, extraction=Proximal()),
    "weighed": Level(
        data=DATA,
        critic=TDCritic(trunk=SMALL),
        policy=NormalPolicy(trunk=SMALL),
        extraction=AWR(),
        rows=DensityRatio(trunk=SMALL),
    ),
    "awac": Level(data=DATA, critic=TDCritic(trunk=SMALL), policy=NormalPolicy(trunk=SMALL), extraction=AWR()),
    "recoil": Level(
        data=DATA,
        critic=ReCOIL(trunk=SMALL),
        policy=NormalPolicy(trunk=SMALL),
        extraction=AWR(largest=100.0),
    ),
    "iql": Level(
        data=DATA,
        critic=ImplicitQ(trunk=SMALL, head=Quantiles(count=5)),
        policy=FLOW,
        extraction=AWR(temperature=0.1, largest=2.0),
    ),
}
DISCRETE = {
    "scaled": Level(critic=Scaled(trunk=SMALL, head=Atoms(count=5)), policy=UniformPolicy(), extraction=Greedy()),
    "dqn": Level(critic=DQN(trunk=SMALL), policy=UniformPolicy(), extraction=Greedy()),
    "categorical": Level(
        critic=DQN(trunk=SMALL, ensemble=2, head=Quantiles(count=3)),
        policy=CategoricalPolicy(trunk=SMALL),
        extraction=Greedy(),
    ),
    "ppo_discrete": Level(
        critic=LambdaReturns(trunk=SMALL), policy=CategoricalPolicy(trunk=SMALL), extraction=Proximal()
    ),
    "iql_discrete": Level(
        critic=ImplicitQ(trunk=SMALL), policy=CategoricalPolicy(trunk=SMALL), extraction=AWR(largest=100.0)
    ),
    "expected": Level(
        critic=TDCritic(trunk=SMALL, best_of=2), policy=CategoricalPolicy(trunk=SMALL), extraction=BestOfN(samples=4)
    ),
}
SHARSA = ControlAgent(
    levels=(
        Level(
            data=NStep(goals=Relabelled(future=0.5), action="subgoal", steps=5),
            critic=Sarsa(trunk=SMALL, head=BCE()),
            policy=FLOW,
            extraction=BestOfN(samples=3),
        ),
        Level(data=NStep(goals=SubgoalAhead(steps=5)), policy=FLOW),
    ),
    batch=12,
)


def agent(level: Level, **changes: Any) -> ControlAgent:
    return ControlAgent(levels=(level,), batch=12, **changes)


def store(seed: int) -> TransitionStore:
    return TransitionStore.of(MAZE.dataset(seed))


def discrete_store(seed: int) -> TransitionStore:
    """The walks of the maze with three actions, without goals."""
    episodes = MAZE.dataset(seed)
    for e in episodes:
        e.action, e.goal = torch.eye(3)[torch.arange(e.length) % 3].numpy(), None
    return TransitionStore.of(episodes)


CASES: dict[str, tuple[ControlAgent, Spec, Callable[[int], TransitionStore]]] = {
    **{name: (agent(level, slices=2), MAZE.spec, store) for name, level in LEVELS.items()},
    **{name: (agent(level), Spec(4, 3, (), discrete=True), discrete_store) for name, level in DISCRETE.items()},
    "sharsa": (SHARSA, MAZE.spec, store),
    "floq": (agent(FLOQ, slices=2), MAZE.spec, store),
    "brc": (
        agent(Level(data=NormalisedReturns(), critic=BRC, policy=GAUSSIAN, extraction=SAC()), critic_decay=0.1),
        Spec(4, 2, (), tasks=(2, 3)),
        store,
    ),
    "hiql": (hiql(SMALL, steps=5, options=2).replace(batch=12, weights=ByReturn()), MAZE.spec, store),
}


def tensors(learner: ControlLearner) -> dict[str, torch.Tensor]:
    return learner.state()[0]


QUICK = ("sac", "cql", "quantiles", "td3", "ppo", "dqn", "sharsa", "brc", "hiql")
"""Of each kind of critic, policy and data one."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in CASES]
)
def test_every_agent_learns_and_acts_side_by_side_as_it_does_alone(name: str) -> None:
    of, spec, data = CASES[name]
    assert not of.alone
    sources = [[(data(seed), 8), (data(seed + 100), 4)] for seed in SEEDS]
    agents = [of.replace(critic_lr=r * of.critic_lr, policy_lr=r * of.policy_lr) for r in RATES]
    alone, beside = ([ControlLearner(of, spec, seed) for of, seed in zip(agents, SEEDS, strict=True)] for _ in range(2))
    for part, cloning in ((2, True), (UPDATES, False), (1, False)):  # a call goes on with the moments of the last
        apart = [learner.train(part, s, cloning=cloning) for learner, s in zip(alone, sources, strict=True)]
        together = train_together(beside, part, sources, cloning=cloning)
        for ours, theirs in zip(together, apart, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-4)
    for one, other in zip(alone, beside, strict=True):
        assert one.updates == other.updates == UPDATES + 3
        ours, theirs = tensors(one), tensors(other)
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            torch.testing.assert_close(value, theirs[key], atol=TOLERANCE, rtol=TOLERANCE)
    assert any(not torch.equal(a, b) for a, b in zip(tensors(beside[0]).values(), tensors(beside[1]).values()))  # noqa: B905

    copies = 2
    observation, goal = torch.rand(len(SEEDS) * copies, spec.observation).numpy(), torch.rand(6, len(spec.goal)).numpy()
    for explore in (False, True):
        acting = act_together(beside, SEEDS, explore)
        parts = [act_together([learner], [seed], explore) for learner, seed in zip(beside, SEEDS, strict=True)]
        for first in (True, False):
            begins = torch.full((6,), first).numpy()
            taken = acting(observation, goal, begins)
            for k, act in enumerate(parts):
                rows = slice(k * copies, (k + 1) * copies)
                expected = act(observation[rows], goal[rows], begins[rows])
                torch.testing.assert_close(torch.tensor(taken[rows]), torch.tensor(expected), atol=1e-4, rtol=1e-4)


def test_decay_takes_a_share_of_the_weights_of_critics_alone() -> None:
    plain, decayed = (ControlLearner(agent(LEVELS["sac"], **of), MAZE.spec, 0) for of in ({}, {"critic_decay": 0.5}))
    before = {key: value.clone() for key, value in tensors(plain).items()}
    for learner in (plain, decayed):
        learner.train(1, [(store(0), 12)])
    for key in ("0.critic.q.net.weights.0", "0.critic.q.net.gains.0", "0.actor.policy.net.weights.0"):
        taken = tensors(plain)[key] - tensors(decayed)[key]
        share = 0.5 * plain.agent.critic_lr if "critic" in key else 0.0
        torch.testing.assert_close(taken, share * before[key], atol=1e-7, rtol=1e-3)


def test_runs_draw_their_own_numbers_side_by_side() -> None:
    noise, apart = RunNoise.seeded(1, 2), [RunNoise.seeded(seed) for seed in (1, 2)]
    share = torch.rand(2, 5, 3)
    for draw in (
        lambda n, k: n.normal(3, 2), lambda n, k: n.uniform(4), lambda n, k: n.permutation(7),
        lambda n, k: n.choice(share if k is None else share[k], 6),
    ):  # fmt: skip
        assert torch.equal(draw(noise, None), torch.stack([draw(n, k) for k, n in enumerate(apart)]))


def test_a_part_that_does_not_say_that_it_knows_runs_learns_alone() -> None:
    class Mine(SAC): ...

    remembering = LEVELS["sac"].replace(data=NStep(), memory=GRU())
    assert agent(LEVELS["sac"].replace(extraction=Mine())).alone == (Mine.type_name(),)
    assert agent(remembering).alone == ("gru",)
    assert RECIPE.beside() == RECIPE.replace(seed=9).beside() is not None
    assert RECIPE.replace(agent=agent(remembering)).beside() is None
    assert RECIPE.replace(tasks={"maze": "medium"}).beside() == RECIPE.beside()
    assert RECIPE.replace(agent={"policy_lr": 0.5}).beside() == RECIPE.beside()
    assert RECIPE.replace(agent={"batch": 4}).beside() != RECIPE.beside()


def watch(folder: Path) -> Listener:
    return Silent()


def runs(home: Path, recipe: ControlRecipe = RECIPE) -> dict[Path, ControlRecipe]:
    return {home / str(seed): recipe.replace(seed=seed) for seed in SEEDS}


def compared(row: dict[str, Any]) -> dict[str, Any]:
    """What of a row of metrics is the same up to rounding."""
    return {k: pytest.approx(v, abs=1e-4) if isinstance(v, float) else v for k, v in row.items()}


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs that learned side by side."""
    home = tmp_path_factory.mktemp("beside")
    train_all(runs(home), watch, jobs=1)
    return home


def test_runs_side_by_side_have_the_rows_of_runs_alone(beside: Path, tmp_path: Path) -> None:
    for folder, recipe in runs(tmp_path / "alone").items():
        recipe.train(folder)
        ours, theirs = rows_of(beside / folder.name), rows_of(folder)
        assert ours == [compared(row) for row in theirs]


class Uneven(PointMaze):
    """Training episodes are the longer the more walks the data has; each copy plays two."""

    def training(self, count: int, horizon: int) -> PointMazeEnv:
        env = super().training(count, horizon * self.episodes)
        env.turns = 2
        return env


def test_runs_that_part_go_on_apart(tmp_path: Path) -> None:
    """With a number of updates for each step, runs whose episodes differ in length do not learn as much."""
    phases = [{"iterations": 2, "episodes": 2, "utd": 0.1, "retained": 0.5}]
    tasks = [Uneven(maze="umaze", walks="reach", episodes=n, length=40) for n in (4, 4, 8)]
    recipes = [RECIPE.replace(phases=phases, seed=seed, tasks=t) for seed, t in zip(SEEDS, tasks, strict=True)]
    train_all({tmp_path / "beside" / str(r.seed): r for r in recipes}, watch, jobs=1)
    updates = []
    for folder, alone in {tmp_path / "alone" / str(r.seed): r for r in recipes}.items():
        alone.train(folder)
        rows = rows_of(folder)
        assert rows_of(tmp_path / "beside" / folder.name) == [compared(row) for row in rows]
        updates.append([row["updates"] for row in rows if row["kind"] == "train"])
    assert updates[0][0] == updates[1][0] != updates[2][0]


class Killed(Exception):
    """Takes the place of the end of the process."""


@pytest.mark.parametrize("at", [2, 4, 7, 11, 16])
def test_runs_that_were_stopped_at_different_places_go_on_as_if_they_were_not(
    beside: Path, tmp_path: Path, at: int
) -> None:
    left = at

    def kill(row: dict[str, Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    listener: Any = Silent()
    killer = type("Killer", (Silent,), {"__call__": lambda self, row: kill(row)})()
    with pytest.raises(Killed):
        train_all(runs(tmp_path / "resumed"), lambda folder: killer, jobs=1)
    train_all(runs(tmp_path / "resumed"), lambda folder: listener, jobs=1)
    for folder in runs(beside):
        assert rows_of(tmp_path / "resumed" / folder.name) == [compared(row) for row in rows_of(folder)]
        last = "checkpoints/000004/trainer.safetensors"
        assert (folder / last).exists() and (tmp_path / "resumed" / folder.name / last).exists()
