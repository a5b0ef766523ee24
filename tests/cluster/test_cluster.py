"""A run on a Ray cluster of two nodes: the numbers of one process, and nothing lost when processes die."""

import os
import random
import subprocess
import sys
from typing import Any

import pytest
import torch
from deadly_world import DeadlyTasks, FailingEngine
from helpers import content, rows_of, trajectories_of
from one_page import make_recipe, save_model

from longstride.cli.main import main
from longstride.cluster.cluster import Cluster
from longstride.cluster.config import ClusterConfig
from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError, MissingExtra, RunError
from longstride.core.seeds import stream
from longstride.engines.base import Request
from longstride.engines.config import HTTP, VLLM, Local
from longstride.engines.local import LocalEngine
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import KL, Reinforce
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample
from longstride.methods.kl import MovingAverage
from longstride.models.load import load_policy
from longstride.rollout.episode import Plan
from longstride.rollout.planning import at_once
from longstride.run.loop import train
from longstride.run.policies import load_run

SMALL = ClusterConfig(worker_cpus=0.1, replica_cpus=0.1, learner_cpus=0.1, gpus=0, start_seconds=300)


@pytest.fixture(scope="module")
def nodes():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # a busy machine would have no time for them
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # workers import `deadly_world`
        nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        nodes.add_node(num_cpus=1)
    ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def deadly(model_folder, tmp_path_factory):
    """A recipe, and the file of deaths."""
    deaths = tmp_path_factory.mktemp("deaths") / "left"
    deaths.write_text("")
    tasks = DeadlyTasks(deaths=str(deaths))
    return make_recipe(model_folder, tasks=tasks, iterations=2, episodes_per_iteration=8), deaths


@pytest.fixture(scope="module")
def cluster(nodes, deadly):
    """Two replicas of two processes, and workers that play an episode at a time."""
    config = SMALL.replace(replicas=2, envs_per_worker=1, retries=1)
    with Cluster(config, deadly[0].replace(engine=Local(processes=2))) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def policy(model_folder):
    return load_policy(str(model_folder))


@pytest.fixture(scope="module")
def engine(cluster, policy):
    return cluster.engine(policy, version=3)


NOBODY: Any = None
"""The player that a cluster's pool is given, and whose part its workers take."""


def requests(n: int) -> list[Request]:
    return [Request([5 + k, 7, 9], 40, seed=k, session=k) for k in range(n)]


def local(policy, version: int = 3) -> LocalEngine:
    return LocalEngine(policy.model, policy.chat.end_ids, policy.max_context, version)


@pytest.mark.slow
def test_a_run_whose_worker_dies_gives_the_episodes_and_numbers_of_one_process(nodes, deadly, tmp_path):
    recipe, deaths = deadly
    train(recipe, tmp_path / "one")
    deaths.write_text("x")
    train(recipe, tmp_path / "spread", placement=SMALL.replace(workers=2, envs_per_worker=2, learner_ranks=1))
    assert deaths.read_text() == ""
    for one, other in zip(*(map(content, trajectories_of(tmp_path / name)) for name in ("one", "spread")), strict=True):
        for turn, same in zip(one["turns"], other["turns"], strict=True):
            assert same.pop("logprobs") == pytest.approx(turn.pop("logprobs"), abs=1e-4)
        assert other == one
    for one, other in zip(*(rows_of(tmp_path / name) for name in ("one", "spread")), strict=True):
        assert other.keys() == one.keys()
        for key, value in one.items():
            assert other[key] == (pytest.approx(value, rel=1e-4, abs=1e-6) if isinstance(value, float) else value)
    one, other = (load_run(tmp_path / name)[1].model.state_dict() for name in ("one", "spread"))
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_replicas_say_what_one_engine_says_and_count_their_tokens(engine, policy):
    alone, asked = local(policy), requests(6)
    for one, other in zip(alone.generate(asked), engine.generate(asked), strict=True):
        assert (other.ids, other.finish, other.versions) == (one.ids, one.finish, one.versions)
        assert other.logprobs == pytest.approx(one.logprobs, abs=1e-4)
    assert {engine._homes[k] for k in range(6)} == {0, 1}
    assert (engine.version, engine.tokens_in, engine.tokens_out) == (3, alone.tokens_in, alone.tokens_out)
    for k in range(6):
        engine.release(k)
    assert not engine._homes
    engine.cancel(engine.submit(Request([5], 100, seed=0)))
    assert engine.poll() == []
    with pytest.raises(ValueError, match="at least one token"):
        engine.submit(Request([], 1, seed=0))


@pytest.mark.slow
def test_replicas_that_die_come_back_with_the_newest_weights_and_are_asked_anew(nodes, cluster, engine, policy):
    """One as a whole, of the other one of the processes in which it samples."""

    def kill_a_sampler(replica):
        _, samplers = replica._engine._end.peek()[2]
        samplers[1].kill()

    newer = load_policy(policy.name)
    with torch.no_grad():
        for p in newer.model.parameters():
            p.mul_(1.1)
    engine.update(newer.model, 4)
    asked = requests(8)
    tickets = [engine.submit(r) for r in asked]
    nodes.kill(cluster._replicas[0], no_restart=False)
    cluster._replicas[1].__ray_call__.options(max_task_retries=0).remote(kill_a_sampler)
    done = {}
    while len(done) < len(tickets):
        done |= dict(engine.poll())
    found = [done[t] for t in tickets]
    assert [c.ids for c in found] == [c.ids for c in local(newer, 4).generate(asked)]
    assert {v for c in found for v in c.versions} == {4}


@pytest.mark.slow
def test_a_process_that_ray_ends_at_once_has_a_last_word_and_another_has_none(cluster):
    assert cluster._last_word._witness.poll() is None
    program = "import os\nfrom longstride.cluster.last_word import LastWord\nwith LastWord():\n    "
    killed, ended = (
        subprocess.run([sys.executable, "-c", program + last], capture_output=True, text=True, timeout=60)
        for last in ("os.kill(os.getpid(), 9)", "pass")
    )
    assert "the raylet" in killed.stderr and "resume the run" in killed.stderr
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_a_plan_whose_workers_die_is_failed_all_others_are_played_and_a_bug_ends_the_run(engine, cluster, deadly):
    recipe, deaths = deadly
    deaths.write_text("xx")
    task = recipe.tasks.sample(random.Random(0), 1)[0]
    plan = lambda i: [Plan(task, n, n, Budget(turns=2), iteration=i) for n in (3 * i, 3 * i + 1, 3 * i + 2)]  # noqa: E731
    shown: list[tuple[int, int]] = []
    with cluster.pool(NOBODY) as pool:
        played = dict(pool.iterations(lambda i: at_once(plan(i)), 1, 2, lambda *done: shown.append(done)))
        deaths.rename(deaths.with_name("hidden"))
        pool.submit(plan(3))
        with pytest.raises(FileNotFoundError):
            pool.collect([9])
    deaths.with_name("hidden").rename(deaths)
    assert {i: [t.ordinal for t in ts] for i, ts in played.items()} == {1: [3, 4, 5], 2: [6, 7, 8]}
    failed = [t for ts in played.values() for t in ts if t.stop is StopReason.INFRA_FAILURE]
    assert [t.ordinal for t in failed] == [3] and "its worker died 2 times" in failed[0].evidence["failure"]
    assert shown[-1] == (3, 3) and deaths.read_text() == ""


@pytest.mark.slow
def test_two_ranks_take_the_steps_of_one_and_a_dead_one_ends_the_run(nodes, deadly, policy):
    loss = Reinforce(kl=KL(coefficient=0.1, anchor=MovingAverage(decay=0.5)))
    recipe = deadly[0].replace(learner=LearnerConfig(lr=5e-4, batch_samples=4, dtype="float32"), loss=loss)
    rng = random.Random(1)
    streams = {ADVANTAGES: [1.0] * 4, BEHAVIOUR: [-3.0] * 4}
    samples = [Sample([5, 6, 7 + k % 3], [rng.randrange(9) for _ in range(4)], streams, k) for k in range(9)]
    alone = Learner(load_policy(policy.name).model, recipe.learner, recipe.loss)
    with Cluster(SMALL.replace(learner_ranks=2), recipe) as cluster:
        ranks = cluster.learner(load_policy(policy.name))
        for k in range(3):
            mine, theirs = (each.update(samples, stream(0, "learner", k)) for each in (alone, ranks))
            assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-6)
            for each in (alone, ranks):
                each.move_reference(k + 1)
            ranks.load_state(*ranks.state())
        assert mine["kl"] > 0  # the anchor lags behind
        for one, other in zip(alone.logprobs(samples), ranks.logprobs(samples), strict=True):
            assert other == pytest.approx(one, abs=1e-4)
        for value, other in zip(*(each.full_model().state_dict().values() for each in (alone, ranks)), strict=True):
            torch.testing.assert_close(other, value, rtol=0, atol=1e-6)
        assert ranks.state()[1] == alone.state()[1]
        nodes.kill(cluster._actors[1])
        with pytest.raises(RunError, match="learner rank is dead.*resume"):
            ranks.update(samples, stream(0, "learner", 2))


@pytest.mark.slow
def test_actors_that_the_cluster_has_no_cpus_for_are_refused(nodes, deadly, policy):
    config = SMALL.replace(replica_cpus=100.0, start_seconds=1.0)
    with (
        Cluster(config, deadly[0]) as cluster,
        pytest.raises(ConfigError, match=r"no room .* for 1 engine replicas and 0 learner ranks.*2 CPUs"),
    ):
        cluster.engine(policy, 0)


@pytest.mark.slow
def test_replicas_and_ranks_have_places_together_or_none_has(nodes, deadly):
    config = SMALL.replace(replicas=2, learner_ranks=2, replica_cpus=0.3, learner_cpus=0.3)
    with Cluster(config, deadly[0]) as cluster:  # two of four on each node
        cluster._place(0, 0.3)
        with (
            Cluster(config.replace(start_seconds=1.0), deadly[0]) as other,
            pytest.raises(ConfigError, match="no room .* for 2 engine replicas and 2 learner ranks"),
        ):
            other._place(0, 0.3)


@pytest.mark.slow
def test_a_replica_whose_engine_fails_is_started_again_and_asked_anew(nodes, deadly, policy, tmp_path):
    deaths = tmp_path / "deaths"
    deaths.write_text("x")
    failing = FailingEngine(deaths=str(deaths))
    with Cluster(SMALL, deadly[0].replace(engine=failing)) as cluster:
        found = cluster.engine(policy, 3).generate(requests(2))
    assert deaths.read_text() == "" and [c.ids for c in found] == [c.ids for c in local(policy).generate(requests(2))]


def test_a_replica_whose_vllm_is_cut_over_several_cards_has_them_all(deadly, tmp_path):
    pytest.importorskip("ray")
    cut = Cluster(SMALL, deadly[0].replace(engine=VLLM(cards=4, path=str(tmp_path))))
    cut._gpus = 1.0
    ranks = [cut._gpus_of(SMALL.replicas + n) for n in range(SMALL.learner_ranks)]
    assert [cut._gpus_of(n) for n in range(SMALL.replicas)] == [4.0] * SMALL.replicas and ranks == [1.0] * len(ranks)


def test_a_cluster_needs_ray_and_an_engine_of_its_own(deadly, monkeypatch):
    served = HTTP(url="http://127.0.0.1:1/v1", model="m")
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match="engine.type is 'http'"):
        Cluster(SMALL, deadly[0].replace(engine=served))
    with pytest.raises(ConfigError, match="leave engine.sleep out"):
        Cluster(SMALL, deadly[0].replace(engine=VLLM(sleep=True)))
    with pytest.raises(ConfigError, match="companions: leave out --cluster"):
        Cluster(SMALL, deadly[0].replace(companions={"guide": {"model": "base", "context": {"type": "full_history"}}}))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"longstride\[ray\]"):
        Cluster(SMALL, deadly[0])


def test_a_file_says_what_goes_where_and_a_mistyped_name_is_refused(tmp_path, capsys):
    (tmp_path / "cluster.toml").write_text("wokers = 4")
    assert main(["train", "tti", "--out", str(tmp_path / "run"), "--cluster", str(tmp_path / "cluster.toml")]) != 0
    assert "did you mean 'workers'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
