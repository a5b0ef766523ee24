"""Several servers as one engine: where requests go, what becomes of them when a server dies, is silent or has other
weights, and who has which weights. Members made here, on a clock of their own; then servers on loopback."""

import random
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from completions_server import Server, batch, tiny
from helpers import SLOW, eventually
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge_server import hang
from vllm_server import VLLMServer

from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, LongstrideWarning
from longstride.engines import servers
from longstride.engines.base import Completion, Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.http import HTTPEngine, Refused, Taken
from longstride.engines.local import LocalEngine
from longstride.engines.servers import PULSE, TRIES, Servers
from longstride.engines.weights import NCCL, Folder

pytestmark = pytest.mark.filterwarnings("ignore:engine:longstride.core.errors.LongstrideWarning")


@pytest.fixture(scope="module")
def policy():
    return tiny(1)


class Member:
    """A server that answers when it is told to; its tokens are a function of the request's seed and its weights."""

    def __init__(self, address: str, told: Any) -> None:
        self.address, self.told, self.version, self.alive = address, told, 0, True
        self.label = self.says = ""
        self.asked: dict[int, Request] = {}
        self.seen: list[Request] = []
        self.done: list[Any] = []
        self.prepared = 0

    def submit(self, request: Request) -> int:
        self.seen.append(request)
        self.asked[len(self.seen)] = request
        return len(self.seen)

    def answer(self, n: int = 1 << 30, error: EngineFailure | None = None) -> None:
        for inner in list(self.asked)[:n]:
            request = self.asked.pop(inner)
            self.done.append((inner, error or Completion([request.seed], [-1.0], [self.version], "stop")))
        self.told()

    def collect(self) -> Any:
        done, self.done = self.done, []
        return done

    def look(self) -> "Future[str]":
        found: Future[str] = Future()
        if self.alive:
            found.set_result(self.says)
        else:
            found.set_exception(EngineFailure(f"{self.address} is gone"))
        return found

    def cancel(self, inner: int) -> None:
        self.asked.pop(inner, None)

    def release(self, session: int) -> None: ...
    def close(self) -> None: ...
    def check_tokenizer(self) -> None: ...
    def examine(self, samplings: Any, model: Any = None) -> None: ...

    def prepare(self, weights: Any, version: int) -> None:
        self.prepared += 1

    def give(self, weights: Any, version: int, prepared: bool = False) -> Taken:
        assert prepared and not self.asked
        if not self.alive:
            raise EngineFailure(f"{self.address} is gone")
        self.says = f"run-{version}"
        return Taken("m", self.says)

    def take(self, taken: Taken, version: int) -> None:
        self.label, self.version = taken.label, version


class Farm:
    """Members, and the engine that they are together."""

    def __init__(self, policy: Any, n: int, **config: Any) -> None:
        self.now, self.members = 0.0, {}
        settings = {"url": [f"http://s{k}/v1" for k in range(n)], "model": "m", "weights": Folder(path="/tmp")} | config
        self.engine = Servers(HTTP(**settings), policy, 0, [Sampling()], self.make, lambda: self.now, 0.001)

    def make(self, address: str, told: Any) -> Any:
        name = address.removeprefix("http://").removesuffix("/v1")
        self.members[name] = Member(name, told)
        return self.members[name]

    def __getitem__(self, k: int) -> Member:
        return self.members[f"s{k}"]

    def wait(self, seconds: float) -> None:
        """Time goes on, and looks are made and read."""
        for _ in range(int(seconds / PULSE * 12) + 2):
            self.now += PULSE / 10
            self.engine.poll()

    def serve(self) -> list[Any]:
        """Polls until nothing is open, while all who live answer."""
        told = []
        while self.engine._asked:
            for member in self.members.values():
                if member.alive:
                    member.answer()
            told += self.engine.poll()
        return told


class Waits:
    """A queue that counts how often it was waited for."""

    def __init__(self, queue: Any) -> None:
        self.get_nowait, self._get, self.count = queue.get_nowait, queue.get, 0

    def get(self, timeout: float) -> Any:
        self.count += 1
        return self._get(timeout=timeout)


def request(seed: int, session: int | None = None, prompt: int = 10, new: int = 10, word: int | None = None) -> Request:
    return Request([seed if word is None else word] * prompt, new, seed, session)


@pytest.fixture
def farm(policy):
    return lambda n=2, **config: Farm(policy, n, **config)


class TestWhere:
    def test_load_is_shared_by_tokens_in_flight(self, farm):
        made = farm(2)
        for request_ in (request(1, prompt=100), request(2), request(3), request(4), request(5)):
            made.engine.submit(request_)
        assert [len(made[0].asked), len(made[1].asked)] == [1, 4]

    def test_turns_of_a_session_stay_where_their_context_is_until_others_have_nothing_to_do(self, farm):
        made = farm(2)
        for turn in range(1, 5):
            for session in range(6):
                made.engine.submit(request(10 * turn + session, session, 100 * turn))
            made.serve()
        homes = [{r.session for r in made[k].seen} for k in (0, 1)]
        assert [len(h) for h in homes] == [3, 3] and not homes[0] & homes[1]
        for k in range(60):  # one server has more to do than reading a context takes
            made.engine.submit(request(900 + k, min(homes[0]), 500))
        assert made[1].asked and made[0].asked

    def test_episodes_that_begin_alike_go_together_where_others_have_work(self, farm):
        made = farm(2)
        for k in range(4):
            made.engine.submit(request(k, k, new=1000))
        for k in range(8):
            made.engine.submit(request(100 + k, 100 + k, 400, 1, word=7))
        read = [sum(r.prompt[0] == 7 for r in made[k].asked.values()) for k in (0, 1)]
        assert sorted(read) in ([0, 8], [1, 7])

    def test_a_release_forgets_the_home(self, farm):
        made = farm(2)
        made.engine.submit(request(1, session=5))
        made.engine.release(5)
        made.engine.release(5)
        assert not made.engine._homes


class TestTrouble:
    def test_what_a_server_leaves_open_is_asked_again_elsewhere_as_it_was(self, farm):
        made = farm(3)
        tickets = [made.engine.submit(request(k, k)) for k in range(9)]
        before = {r.seed: r for r in made[0].asked.values()}
        with pytest.warns(LongstrideWarning, match="s0 died; .*3 open turns are asked again.*; 2 of 3 servers"):
            made[0].answer(1, EngineFailure("s0 died"))
            made.engine.poll()
        again = {r.seed: r for k in (1, 2) for r in made[k].asked.values() if r.seed in before}
        assert again == before and not made[0].asked
        told = made.serve()
        assert sorted(t for t, _ in told) == tickets and sorted(c.ids[0] for _, c in told) == list(range(9))
        assert made.engine.metrics() == {"servers": 2, "asked_again": 3}
        assert made.engine.metrics()["asked_again"] == 0

    def test_a_request_that_is_refused_fails_alone_and_the_server_stays(self, farm):
        made = farm(2)
        ticket = made.engine.submit(request(1))
        made[0].answer(1, Refused("too long"))
        assert [t for t, o in made.engine.poll() if isinstance(o, Refused)] == [ticket]
        assert made.engine.metrics()["servers"] == 2

    def test_a_silent_server_is_found_out_by_looks(self, farm):
        made = farm(2)
        made.engine.submit(request(1))
        made[0].alive = False
        made.wait(2 * PULSE)
        assert not made[0].asked and [r.seed for r in made[1].asked.values()] == [1]

    def test_one_look_that_is_missed_costs_nothing(self, farm):
        made = farm(2)
        made.engine.submit(request(1))
        made[0].alive = False
        made.now = PULSE
        made.engine.poll()
        made.now += PULSE / 10
        made.engine.poll()
        made[0].alive = True
        made.wait(5 * PULSE)
        assert made[0].asked and made.engine.metrics()["servers"] == 2

    def test_a_server_with_other_weights_is_left_out_and_takes_the_next_ones(self, farm):
        made = farm(2)
        made.engine.submit(request(1))
        made[0].says = "default"  # started again
        with pytest.warns(LongstrideWarning, match="has weights 'default', not 'run-0'"):
            made.wait(2 * PULSE)
        assert not made[0].asked and made[1].asked
        made.wait(5 * PULSE)
        assert made.engine.metrics()["servers"] == 1
        made.serve()
        made.engine.update(None, 1)
        assert made.engine.metrics()["servers"] == 2 and made[0].version == made[1].version == 1

    def test_a_server_that_was_cut_off_is_back_by_its_label_but_not_after_an_update(self, farm):
        made = farm(2)
        for version in (1, 2):
            made[0].alive = False
            made.wait(3 * PULSE)
            assert made.engine.metrics()["servers"] == 1
            if version == 2:
                made.engine.update(None, 1)
            made[0].alive = True
            made.wait(2 * PULSE)
            assert made.engine.metrics()["servers"] == (2 if version == 1 else 1)

    def test_without_any_server_requests_wait_and_fail_in_time(self, farm):
        made = farm(2, timeout=20.0)
        made.engine.submit(request(1))
        for k in (0, 1):
            made[k].alive = False
        made.wait(3 * PULSE)
        assert made.engine.metrics()["servers"] == 0
        made[1].alive = True
        made.wait(1.5 * PULSE)
        assert [r.seed for r in made[1].asked.values()] == [1]
        made[1].alive = False
        told = []
        for _ in range(100):
            made.now += PULSE / 10
            told += made.engine.poll()
        ((_, outcome),) = told
        assert isinstance(outcome, EngineFailure) and "none of 2 servers answers" in str(outcome)

    def test_a_request_under_which_every_server_fails_is_a_failure_in_the_end(self, farm):
        made = farm(TRIES + 1)
        ticket = made.engine.submit(request(1))
        told = []
        for _ in range(TRIES):
            for member in made.members.values():
                if member.asked:
                    member.answer(1, EngineFailure("it ended"))
                    break
            told += made.engine.poll()
        assert [t for t, _ in told] == [ticket] and f"{TRIES} servers failed under it" in str(told[0][1])
        assert made.engine.metrics()["servers"] == 1

    def test_what_is_cancelled_is_forgotten_wherever_it_is(self, farm):
        made = farm(1)
        ticket = made.engine.submit(request(1))
        made.engine.cancel(ticket)
        assert not made[0].asked and not made.engine._asked and made.engine._servers["http://s0/v1"].load == 0
        made[0].alive = False
        made.wait(3 * PULSE)
        made.engine.cancel(made.engine.submit(request(2)))
        made.engine.cancel(999)
        assert not made.engine._waiting and not made.engine._asked


class TestWeights:
    def test_all_have_them_before_one_samples_and_they_are_saved_once(self, farm):
        made = farm(3)
        tickets = [made.engine.submit(request(k)) for k in range(3)]
        told = []
        prepared = [made[k].prepared for k in range(3)]
        poll = made.engine.poll
        made.engine.poll = lambda: ([m.answer() for m in made.members.values()], poll())[1]
        made.engine.update(None, 1)  # waits for what is open, under the old ones
        told = poll()
        assert [t for t, _ in told] == tickets and {v for _, c in told for v in c.versions} == {0}
        assert sum(made[k].prepared for k in range(3)) - sum(prepared) == 1
        assert [made[k].label for k in range(3)] == ["run-1"] * 3

    def test_a_look_from_before_an_update_says_nothing_after_it(self, farm):
        made = farm(2)
        made.now += PULSE
        made.engine.poll()  # looks are made, and read half a second later
        made.engine.update(None, 1)
        made.now += PULSE / 10
        made.engine.poll()
        assert made.engine.metrics()["servers"] == 2

    def test_a_look_over_a_connection_that_is_closed_by_an_update_is_forgotten(self, farm):
        made, cancelled = farm(2), Future[str]()
        made[0].alive = False
        made.wait(3 * PULSE)
        made[0].look = lambda: cancelled  # under way for long, and dropped with the connection
        made.now += PULSE
        made.engine.poll()
        cancelled.cancel()
        cancelled.set_running_or_notify_cancel()
        del made[0].look
        made[0].alive = True
        made.engine.update(None, 1)
        made.wait(2 * PULSE)
        assert made.engine.metrics()["servers"] == 2

    def test_an_update_waits_in_every_poll_also_where_one_has_answered(self, farm):
        made = farm(2)
        made.engine.submit(request(1))
        made.engine.submit(request(2))
        made[0].answer()
        poll, waits, polls = made.engine.poll, Waits(made.engine._came), []

        def counted() -> Any:
            polls.append(1)
            if len(polls) == 20:
                made[1].answer()
            return poll()

        made.engine.poll, made.engine._came = counted, waits
        made.engine.update(None, 1)
        assert waits.count == len(polls) >= 20 and len(poll()) == 2

    def test_one_that_does_not_take_them_is_left_out_and_none_at_all_is_a_failure(self, farm):
        made = farm(2)
        made[0].alive = False
        with pytest.warns(LongstrideWarning, match="engine: s0 is gone; it is left out for now"):
            made.engine.update(None, 1)
        assert made.engine.metrics()["servers"] == 1 and made[0].version == 0
        made[1].alive = False
        with pytest.raises(EngineFailure, match="none of 2 servers answers"):
            made.engine.update(None, 2)
        assert made.engine.version == 1

    def test_servers_join_and_leave_by_the_file(self, farm, tmp_path):
        path = tmp_path / "servers"
        path.write_text("http://s0/v1\nhttp://s1/v1/\n\nhttp://s1/v1\n")
        made = farm(url=None, servers=str(path))
        assert made.engine.metrics()["servers"] == 2
        path.write_text("http://s1/v1\nhttp://s2/v1\n")
        made.engine.submit(request(1))
        made[0].answer()
        made.engine.update(None, 1)
        assert sorted(made.engine._servers) == ["http://s1/v1", "http://s2/v1"]
        assert made[2].version == 1 and made.engine.metrics()["servers"] == 2
        path.write_text("no address\n")
        with pytest.warns(LongstrideWarning, match="expected an address a line; the servers stay"):
            made.engine.update(None, 2)
        assert made.engine.metrics()["servers"] == 2

    def test_a_stranger_is_refused_at_the_start_and_left_out_later(self, farm, policy, monkeypatch, tmp_path):
        path = tmp_path / "servers"
        path.write_text("http://s0/v1\n")
        made = farm(url=None, servers=str(path))

        def refuse(*_: Any) -> None:
            raise ConfigError("preflight: other weights")

        monkeypatch.setattr(Member, "examine", refuse)
        path.write_text("http://s0/v1\nhttp://s1/v1\n")
        with pytest.warns(LongstrideWarning, match="s1/v1 cannot take part: preflight: other weights"):
            made.engine.update(None, 1)
        assert made.engine.metrics()["servers"] == 1
        with pytest.raises(ConfigError, match="other weights"):
            monkeypatch.setattr(servers, "_close", lambda engine: None)
            Servers(made.engine._config, policy, 0, [], made.make)

    def test_servers_that_keep_their_weights_come_back_by_the_preflight(self, farm, policy):
        made = farm(2, weights=None)
        made[0].alive = False
        made.wait(3 * PULSE)
        assert made.engine.metrics()["servers"] == 1
        made[0].alive = True
        made.wait(2 * PULSE)
        assert made.engine.metrics()["servers"] == 2
        with pytest.raises(ConfigError, match="none of 1 servers answers"):
            make = lambda address, told: _dead(Member(address, told))  # noqa: E731
            Servers(HTTP(url=["http://s0/v1"], model="m"), policy, 0, [], make)  # pyright: ignore


def _dead(member: Member) -> Member:
    member.alive = False
    return member


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4))
def test_whatever_servers_do_every_request_is_answered_once_from_the_version_that_it_says(policy, seed, n):
    """Promise 1 on the side of the engine: no token of a version that its server did not have."""
    rng = random.Random(seed)
    made = Farm(policy, n, timeout=1e6)
    version, answers, tickets = 0, {}, {}
    for k in range(60):
        act, who = rng.random(), made.members[rng.choice(list(made.members))]
        if act < 0.5:
            tickets[made.engine.submit(request(k, rng.choice([None, k % 7])))] = k
        elif act < 0.65:
            who.alive = not who.alive
        elif act < 0.7:
            who.says = "default"
        elif act < 0.75 and who.alive and who.asked:
            who.answer(1, EngineFailure("it failed"))
        elif act < 0.9 and who.alive:
            who.answer(rng.randint(1, 5))
        elif act < 0.95 and any(m.alive for m in made.members.values()):
            answers |= _answered(made)
            version += 1
            made.engine.update(None, version)
        made.now += rng.choice([0.1, PULSE])
        answers |= {t: (c, version) for t, c in made.engine.poll()}
    for member in made.members.values():
        member.alive = True
    made.wait(3 * PULSE)
    made.engine.update(None, version + 1) if not made.engine._ready else None
    version += made.engine.version != version
    answers |= {t: (c, version) for t, c in made.serve()}
    assert answers.keys() == tickets.keys()
    for ticket, (completion, at) in answers.items():
        if isinstance(completion, Completion):
            assert completion.ids == [tickets[ticket]] and completion.versions == [at]
        else:
            assert "servers failed under it" in str(completion)


def _answered(made: Farm) -> dict[int, Any]:
    """All that servers have to say before an update: it waits for what is open."""
    version = made.engine.version
    for _ in range(40):
        for member in made.members.values():
            if member.alive:
                member.answer()
        made.now += PULSE / 2
        found = {t: (c, version) for t, c in made.engine.poll()}
        if found or any(s.open for s in made.engine._servers.values()):
            return found | _answered(made)
    return {}


class TestLoopback:
    """Servers that speak vLLM's interface."""

    @pytest.fixture
    def pair(self, policy, monkeypatch):
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 0.001)
        monkeypatch.setattr("longstride.engines.preflight.PROBE_TOKENS", 8)
        made = [VLLMServer(policy), VLLMServer(policy)]
        yield made
        for server in made:
            server.stop()

    def engine(self, pair: list[Server], tmp_path: Path, policy: Any, **settings: Any) -> Servers:
        data = {"url": [f"{s.root}/v1" for s in pair], "model": "m", "timeout": SLOW, "retries": 0} | settings
        config = build(HTTP, data).replace(weights=Folder(path=str(tmp_path)))
        engine = config.make(policy, 0, [Sampling()])
        assert isinstance(engine, Servers)
        return engine

    @pytest.mark.slow
    def test_tokens_are_those_of_one_engine_whoever_samples_and_one_may_die(self, pair, policy, tmp_path):
        engine, requests = self.engine(pair, tmp_path, policy), batch(policy, 12)
        local = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context).generate(requests)
        for s in pair:
            s.bodies.clear()
        done = engine.generate(requests)
        assert [(c.ids, c.versions) for c in done] == [(c.ids, [0] * len(c.ids)) for c in local]
        assert all(4 <= len(s.bodies) <= 8 for s in pair)
        pair[0].always = hang
        tickets = [engine.submit(r) for r in requests]
        eventually(lambda: pair[0].bodies)
        pair[0].stop()
        told: dict[int, Any] = {}
        while len(told) < len(tickets):
            told |= dict(engine.poll())
        assert [told[t].ids for t in tickets] == [c.ids for c in local]
        assert engine.metrics()["servers"] == 1
        new = tiny(2)
        engine.update(new.model, 1)
        local = LocalEngine(new.model, policy.chat.end_ids, policy.max_context).generate(requests)
        assert [(c.ids, c.versions) for c in engine.generate(requests)] == [(c.ids, [1] * len(c.ids)) for c in local]
        engine.close()

    @pytest.mark.slow
    def test_nothing_is_taken_from_a_server_that_was_started_again(self, pair, policy, tmp_path):
        engine, requests = self.engine(pair, tmp_path, policy), batch(policy, 8)
        engine.update(tiny(2).model, 1)
        pair[0].engine.update(policy.model, 0)  # its own weights, under its own label
        pair[0].label = "default"
        local = LocalEngine(tiny(2).model, policy.chat.end_ids, policy.max_context).generate(requests)
        assert [c.ids for c in engine.generate(requests)] == [c.ids for c in local]
        assert engine.metrics()["servers"] == 1
        engine.update(policy.model, 2)
        assert engine.metrics()["servers"] == 2 and pair[0].label == engine._servers[f"{pair[0].root}/v1"].engine.label
        engine.close()

    def test_one_server_says_so_too(self, pair, policy, tmp_path):
        config = HTTP(url=f"{pair[0].root}/v1", model="m", retries=0, weights=Folder(path=str(tmp_path)))
        engine = HTTPEngine(config, policy)
        engine.update(policy.model, 1)
        pair[0].label = "default"
        with pytest.raises(EngineFailure, match="it has weights 'default' where this run gave it"):
            engine.generate(batch(policy, 1))
        engine.close()

    def test_one_that_is_not_there_at_the_start_is_named_and_the_others_go_on(self, pair, policy, tmp_path):
        pair[1].stop()
        engine = self.engine(pair, tmp_path, policy)
        assert engine.metrics()["servers"] == 1 and engine.generate(batch(policy, 2))
        engine.close()


def test_settings_name_one_way_to_find_servers():
    two = build(HTTP, {"url": ["http://a/v1/", "http://b/v1", "http://a/v1"], "model": "m"})
    assert two.addresses() == ["http://a/v1", "http://b/v1"] and build(HTTP, two.as_data()) == two
    assert build(HTTP, {"url": "http://a/v1", "model": "m"}).addresses() == ["http://a/v1"]
    for data in ({}, {"url": "http://a/v1", "servers": "f"}, {"url": []}):
        with pytest.raises(ConfigError, match="expected url"):
            build(HTTP, data | {"model": "m"})
    with pytest.raises(ConfigError, match="url"):
        build(HTTP, {"url": ["http://a/v1", "nowhere"], "model": "m"})
    with pytest.raises(ConfigError, match="port"):
        build(HTTP, {**two.as_data(), "weights": NCCL(port=5000).as_data()})
    with pytest.raises(ConfigError, match="missing: .*expected an address a line"):
        HTTP(servers="missing", model="m").addresses()
