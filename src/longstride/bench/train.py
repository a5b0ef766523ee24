"""Speed of the recipe `tti`, part by part: episodes played, tokens learned from, and the environment alone.

What always holds: both sides play the same tasks with the same seeds from the same weights and empty caches, and learn
from the same turns; a time is that of the whole part, prompts and pages included; engines and learners are made before
it begins.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.errors import ConfigError
from longstride.core.seeds import derive, stream
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Engine
from longstride.engines.local_processes import cores
from longstride.learner.batching import chains
from longstride.learner.learner import Learner
from longstride.methods import Sample
from longstride.models.load import Policy, load_policy
from longstride.papers.tti.recipe import RECIPE
from longstride.rollout.episode import Episode, Plan
from longstride.rollout.players import LanguagePlayer, Player, ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.run.recipe import Recipe

EPISODES = 128
"""Of one round."""
PLAIN = {
    "engine": {"processes": 1, "kernels": "torch"},
    "learner": {"dtype": "auto", "micro_tokens": 8192, "kernels": "torch", "threads": 1},
}
"""What the recipe would have if it set none of what is measured."""
LEARNED = 2
"""Episodes that are learned from for each that is played, once the replay of the recipe is full."""
SIDE = 1024
"""Rows and columns of the matrices whose product says how fast a core multiplies in float32."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; there is no peer but the same recipe with plain settings.

    Raises:
        ConfigError: an environment was named for a peer.
    """
    if peer is not None:
        raise ConfigError(f"the recipe is compared with itself under plain settings; leave --peer {peer} out")
    policy = load_policy(RECIPE.start)
    ours = RECIPE.replace(engine=RECIPE.engine.settled(), learner=RECIPE.learner.settled())
    recipes = {"ours": ours, "plain": ours.replace(**PLAIN)}
    engines = {name: r.engine.make(policy, 0, [r.sampling]) for name, r in recipes.items()}
    learners = {name: Learner(policy.model, r.learner, r.loss) for name, r in recipes.items()}
    samples = every_turn(_played(engines["plain"], policy, recipes["plain"], 0)[0])
    tokens = sum(len(samples[chain[-1]].prompt_ids) + len(samples[chain[-1]].sampled_ids) for chain in chains(samples))

    operations = 2 * sum(p.numel() for p in policy.model.parameters())  # of a token's matrix products, forward

    def side(name: str) -> Callable[[int], dict[str, Any]]:
        def once(k: int) -> dict[str, Any]:
            engine, products = engines[name], _multiplied()
            before = engine.tokens_in + engine.tokens_out
            played, seconds = _played(engine, policy, recipes[name], k)
            passed = engine.tokens_in + engine.tokens_out - before
            began = time.perf_counter()
            learners[name].accumulate(samples)
            learned = time.perf_counter() - began
            return {
                "episodes": EPISODES / seconds,
                "learned": tokens / learned,
                "sampling": seconds,
                "environment": _replayed(played, recipes[name]),
                "success": sum(t.success for t in played) / EPISODES,
                "tokens": sum(t.sampled_tokens for t in played),
                "both": EPISODES / (seconds + LEARNED * learned),
                "least_sampling": passed * operations / products / seconds,
                "least_learning": 3 * tokens * operations / products / learned,
            }

        return once

    try:
        seen = in_turn({name: side(name) for name in recipes}, rounds, progress)
    finally:
        for engine in engines.values():
            engine.close()
    a, b, against = seen["ours"], seen["plain"], "one process, bfloat16 where the CPU has it, 8192 tokens a pass"
    return [
        Quantity(
            "episodes played and learned from", "1/s", a["both"], b["both"], against, higher_is_better=True, goal=4.0
        ),
        Quantity("episodes played", "1/s", a["episodes"], b["episodes"], against, higher_is_better=True),
        Quantity("tokens learned from", "1/s", a["learned"], b["learned"], against, higher_is_better=True),
        Quantity("the environment's share of playing", "", a["environment"] / a["sampling"]),
        Quantity("the matrix products' share of playing", "", a["least_sampling"], higher_is_better=True),
        Quantity("the matrix products' share of playing, plain", "", b["least_sampling"], higher_is_better=True),
        Quantity("the matrix products' share of learning", "", a["least_learning"], higher_is_better=True),
        Quantity("the matrix products' share of learning, plain", "", b["least_learning"], higher_is_better=True),
        Quantity("sampled tokens of a round, plain over ours", "", a["tokens"], b["tokens"], against),
        Quantity("success of a round", "", a["success"], higher_is_better=True),
        Quantity("success of a round, plain", "", b["success"], higher_is_better=True),
    ], {"torch": str(torch.__version__), "settings": f"{ours.engine.as_data()}, {ours.learner.as_data()}"}


def _multiplied() -> float:
    """Operations a second that all cores together would do in float32, were each as fast in torch's product of two
    large matrices as this one is now."""
    a = torch.ones(SIDE, SIDE)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        torch.mm(a, a)
        times.append(time.perf_counter() - began)
    return 2 * SIDE**3 / min(times) * max(1, cores() // torch.get_num_threads())


def every_turn(trajectories: Sequence[Trajectory]) -> list[Sample]:
    """All turns as samples whose tokens weigh the same."""
    return [Sample.of(t, k, [1.0] * len(turn.sampled_ids)) for t in trajectories for k, turn in enumerate(t.turns)]


def plans_of(recipe: Recipe, k: int) -> list[Plan]:
    """The episodes of round k, under the test budget."""
    tasks = recipe.tasks.sample(stream(recipe.seed, "bench", k), EPISODES)
    return [
        Plan(t, n, derive(recipe.seed, "bench", k, n), recipe.test_budget.at(1, t.difficulty), group=n)
        for n, t in enumerate(tasks)
    ]


def _played(engine: Engine, policy: Policy, recipe: Recipe, k: int) -> tuple[list[Trajectory], float]:
    """The episodes of round k, and the seconds that they took."""
    engine.update(policy.model, k)  # empties its caches
    return _timed(LanguagePlayer(engine, policy.chat, recipe.context, recipe.sampling), plans_of(recipe, k), recipe)


def _replayed(trajectories: Sequence[Trajectory], recipe: Recipe) -> float:
    """Seconds that the environment takes for the same turns."""
    plans = [Plan(t.task, t.ordinal, t.seed, t.budget, group=t.group) for t in trajectories]

    def say(episode: Episode) -> str:
        return trajectories[episode.plan.ordinal].turns[episode.turns].text

    return _timed(ScriptedPlayer(say), plans, recipe)[1]


def _timed(player: Player, plans: Sequence[Plan], recipe: Recipe) -> tuple[list[Trajectory], float]:
    pool = Pool(player, recipe.tasks.env, recipe.reward, recipe.tasks.at_once, recipe.pool)
    began = time.perf_counter()
    played = pool.run(plans)
    return played, time.perf_counter() - began


BENCHMARK = Benchmark(
    name="train",
    question="How fast are the parts of `longstride train tti`, beside the same recipe under plain settings?",
    equal=(
        "the model, its weights and empty caches",
        f"{EPISODES} episodes a round: tasks, seeds and the horizon of tests",
        "the turns that are learned from",
    ),
    limits=(
        "environment and episodes are Python on one core, as much work as the passes themselves. A share of 1 is the "
        "rate of torch, which the native products outrun twofold on AVX-512. On a machine that is shared with others "
        "threads and processes bring less."
    ),
    measure=measure,
    how_to_make_peer="  longstride bench train  # there is no peer: the recipe is compared with itself",
)
