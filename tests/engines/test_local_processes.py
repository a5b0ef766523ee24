"""The engine in several processes: the tokens of one, the same bits every time, and processes that end with it."""

import pytest
from helpers import content, trajectories_of, weights_hash
from one_page import make_recipe, save_model

from longstride.core.config import load_toml
from longstride.core.errors import RunError
from longstride.engines.base import Engine, Request
from longstride.engines.config import Local
from longstride.engines.local import LocalEngine
from longstride.models.load import Policy, load_policy
from longstride.run.loop import train
from longstride.run.recipe import Recipe


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def policy(model_folder) -> Policy:
    return load_policy(str(model_folder))


@pytest.fixture
def engine(policy):
    made = Local(processes=2).make(policy, 0, [])
    yield made
    made.close()


def requests(n: int = 8) -> list[Request]:
    return [Request([5 + k % 3, 7, 9], 12, seed=k, session=k, ordinal=k) for k in range(n)]


def sampled(engine: Engine) -> list[list[int]]:
    return [c.ids for c in engine.generate(requests())]


def test_several_processes_sample_the_tokens_of_one_with_its_log_probabilities(engine, policy):
    one = Local().make(policy, 0, [])
    for ours, theirs in zip(engine.generate(requests()), one.generate(requests()), strict=True):
        assert (ours.ids, ours.versions, ours.finish) == (theirs.ids, theirs.versions, theirs.finish)
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
    assert engine.tokens_out == one.tokens_out and engine.tokens_in >= one.tokens_in


def test_a_large_model_stays_in_this_process(policy, monkeypatch):
    monkeypatch.setattr("longstride.engines.local_processes.SMALL", 10)
    assert isinstance(Local(processes=2).make(policy, 0, []), LocalEngine)


def test_each_process_has_the_requests_of_its_ordinals(engine):
    for request in requests(5):
        engine.submit(request)
    assert [len(commands) for commands in engine._commands] == [3, 2]


def test_new_weights_are_those_of_all_processes_from_the_next_token_on(engine, policy):
    before = sampled(engine)
    for p in policy.model.parameters():
        p.data += 0.3
    assert sampled(engine) == before  # they have a copy
    engine.update(policy.model, 1)
    completions = engine.generate(requests())
    assert [c.ids for c in completions] == sampled(Local().make(policy, 1, [])) != before
    assert {v for c in completions for v in c.versions} == {1}


def test_what_was_under_way_goes_on_with_new_weights(engine, policy):
    tickets = [engine.submit(request) for request in requests()]
    engine.update(policy.model, 1)
    found = dict(engine.poll())
    while len(found) < len(tickets):
        found |= dict(engine.poll())
    assert sorted(found) == tickets and engine.poll() == []


def test_a_cancelled_request_is_never_answered(engine):
    first, second = (engine.submit(request) for request in requests(2))
    engine.cancel(first)
    answered = []
    while not answered:
        answered = engine.poll()
    assert [ticket for ticket, _ in answered] == [second]


def test_a_process_that_dies_is_an_error_that_says_so_and_none_outlives_the_engine(engine):
    _, workers = engine._end.peek()[2]
    workers[0].kill()
    with pytest.raises(RunError, match="has ended"):
        for _ in range(100):
            sampled(engine)
    engine.close()
    assert not any(worker.is_alive() for worker in workers)


def test_a_run_in_two_processes_gives_the_same_bits_twice_and_keeps_their_number(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=2, engine=Local(processes=2))
    for name in ("a", "b"):
        train(recipe, tmp_path / name)
    a, b = ([content(t) for t in trajectories_of(tmp_path / name)] for name in "ab")
    assert a == b and len(a) == 20


@pytest.mark.slow
def test_a_run_in_two_processes_that_was_stopped_goes_on_with_the_same_bits(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=3, engine=Local(processes=2))
    train(recipe, tmp_path / "whole")
    train(recipe.replace(iterations=1), tmp_path / "stopped")
    train(recipe, tmp_path / "stopped", resume=True)
    whole, stopped = ([content(t) for t in trajectories_of(tmp_path / name)] for name in ("whole", "stopped"))
    assert whole == stopped and len(whole) == 30
    assert weights_hash(tmp_path / "whole") == weights_hash(tmp_path / "stopped")


def test_what_depends_on_the_machine_is_decided_when_a_run_begins(model_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("longstride.engines.local_processes.cores", lambda: 3)
    recipe = make_recipe(model_folder, iterations=1, engine=Local(processes="auto"))
    recipe.train(tmp_path / "run")
    kept = load_toml(Recipe, tmp_path / "run" / "run.toml")
    assert kept == recipe.replace(engine={"processes": 3}).settled()
    monkeypatch.setattr("longstride.engines.local_processes.cores", lambda: 20)
    settled = recipe.engine.settled()
    assert isinstance(settled, Local) and settled.processes == 8
    assert kept.engine.settled() == kept.engine
    assert recipe.replace(engine={"kernels": "torch"}).engine.settled() == Local(
        processes=8, dtype="float32", kernels="torch"
    )
    kept.replace(iterations=2).train(tmp_path / "run", resume=True)
