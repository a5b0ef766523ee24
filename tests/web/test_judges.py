"""The judge's requests, retries and files, against a server on loopback that fails as it is told."""

import asyncio
import json
import logging
import socket
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from helpers import SLOW, eventually
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_server import Counted, Server, cut_off, endless, hang, reply, response, said

from longstride.core import http
from longstride.core.component import build
from longstride.core.config import dump_toml
from longstride.core.errors import ConfigError, JudgeFailure
from longstride.web.judging import judges
from longstride.web.judging.judges import OpenAIJudge

KEY = "sk-test-0123456789abcdef"


@pytest.fixture(scope="module")
def _server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def server(_server, monkeypatch):
    monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 0.001)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    judges._replies.cache_clear()
    _server.reset()
    return _server


def judge_at(server, **settings):
    return build(OpenAIJudge, {"url": server.url, "model": "m", "timeout": 5} | settings)


def ask(judge, prompt="q", seed=0, vote=0):
    return asyncio.run(judge.ask(prompt, seed, vote))


def ask_all(judge, prompts):
    async def together():
        return await asyncio.gather(*(judge.ask(p, 0) for p in prompts))

    return asyncio.run(together())


class TestRequest:
    def test_a_question_is_one_message_and_greedy(self, server):
        assert ask(judge_at(server, max_tokens=7), "is it red?", vote=3) == "fine"
        assert server.bodies == [
            {"model": "m", "messages": [{"role": "user", "content": "is it red?"}], "temperature": 0, "max_tokens": 7}
        ]

    def test_votes_are_sampled_with_seeds_of_their_own_where_the_temperature_is_not_0(self, server):
        for vote in (0, 1):
            ask(judge_at(server, temperature=0.7), vote=vote)
        assert [(b["temperature"], b["seed"]) for b in server.bodies] == [(0.7, 0), (0.7, 1)]

    def test_the_key_is_sent_and_without_one_nothing_is(self, server, monkeypatch):
        monkeypatch.setenv("JUDGE_KEY", f" {KEY}\n")
        ask(judge_at(server, key_env="JUDGE_KEY"))
        ask(judge_at(server))
        assert [h.get("authorization") for h in server.headers] == [f"Bearer {KEY}", None]

    def test_half_a_character_of_a_page_can_be_sent(self, server):
        ask(judge_at(server), "broken \ud83d emoji")
        assert server.bodies[0]["messages"][0]["content"] == "broken \ud83d emoji"

    def test_no_more_requests_are_under_way_than_allowed(self, server, monkeypatch):
        counted, judge = Counted(), judge_at(server, concurrency=3)
        monkeypatch.setattr("longstride.core.http.post", counted)

        async def together():
            asked = asyncio.gather(*(judge.ask(f"q{i}", 0) for i in range(12)))
            for _ in range(100):  # far more turns of the loop than all need to begin
                await asyncio.sleep(0)
            counted.free.set()
            await asked

        asyncio.run(together())
        assert (len(server.bodies), counted.most) == (12, 3)

    def test_a_judge_serves_one_event_loop_after_the_other(self, server, tmp_path):
        judge = judge_at(server, concurrency=1, cache=str(tmp_path / "replies.jsonl"))
        for start in ("a", "b"):  # each time so many that some wait for a lock and for a place
            assert ask_all(judge, [f"{start}{i % 3}" for i in range(6)]) == ["fine"] * 6
        assert len(judges._by_loop) == 1


class TestTrouble:
    @pytest.mark.parametrize("status", [429, 500, 502, 503])
    def test_a_server_that_is_busy_or_broken_is_asked_again(self, server, status):
        server.script = [response("busy", status)] * 2
        assert ask(judge_at(server, retries=2)) == "fine"
        assert len(server.bodies) == 3

    @pytest.mark.parametrize("trouble", [cut_off, hang, endless(b" ", pause=0.01)], ids=["cut off", "hang", "drip"])
    def test_a_connection_that_breaks_hangs_or_drips_is_asked_again(self, server, trouble):
        server.script = [trouble]
        began = time.monotonic()
        assert ask(judge_at(server, timeout=1)) == "fine"
        assert len(server.bodies) == 2
        assert time.monotonic() - began < SLOW

    def test_after_the_last_retry_it_is_a_failure_that_says_what_happened_and_how_often(self, server):
        server.always = response("busy", 503)
        with pytest.raises(JudgeFailure, match=r"'m' at http://127.*status 503 .request 3 of 3"):
            ask(judge_at(server, retries=2))
        assert len(server.bodies) == 3
        server.always = hang
        with pytest.raises(JudgeFailure, match=r"nothing came within 0.05 s .request 1 of 1"):
            ask(judge_at(server, retries=0, timeout=0.05))

    def test_a_server_that_is_not_there_is_a_failure(self, server):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(JudgeFailure, match="connection.*2 of 2"):
            ask(OpenAIJudge(url=f"http://127.0.0.1:{port}", model="m", retries=1))

    @pytest.mark.parametrize("status", [302, 400, 401, 404, 422])
    def test_a_refusal_is_final_and_quoted(self, server, status):
        server.always = response({"error": "no such model"}, status, location="/v1/chat/completions")
        with pytest.raises(JudgeFailure, match=f"status {status}.*no such model"):
            ask(judge_at(server))
        assert len(server.bodies) == 1

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (response("{broken"), "choices"),
            (response("[" * 100_000), "choices"),
            (response([]), "choices"),
            (response({"choices": []}), "choices"),
            (response('{"choices": ' + "[" * 200 + "]" * 200 + "}"), "choices"),
            (response('{"choices": 1' + "0" * 5000 + "}"), "choices"),
            (response({"choices": [{"text": "red"}]}), "choices"),
            (response(b"\xff\xfe"), "choices"),
            (response(said(None)), "no text"),
            (response(said(7)), "no text"),
            (response(said(" \n")), "no text"),
            (response("<html>fine</html>", media="text/html; charset=utf-8"), "expected application/json.*text/html"),
            (response(said("x" * judges.LARGEST_REPLY)), "more than 262144 bytes"),
            (endless(b" " * 65536), "more than 262144 bytes"),
        ],
    )
    def test_a_response_that_is_no_reply_is_a_failure_and_is_not_asked_for_again(self, server, bad, message):
        server.always = bad
        with pytest.raises(JudgeFailure, match=message):
            ask(judge_at(server))
        assert len(server.bodies) == 1

    @settings(max_examples=20)
    @given(
        st.one_of(st.binary(max_size=60), st.recursive(st.none() | st.text() | st.floats(), st.lists).map(json.dumps))
    )
    def test_whatever_a_server_sends_is_a_reply_or_a_failure(self, _server, body):
        _server.reset()
        _server.always = response(body)
        with pytest.raises(JudgeFailure):
            ask(judge_at(_server))

    def test_a_question_that_is_given_up_leaves_the_server_at_once(self, server):
        server.always = hang

        async def give_up():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await judge_at(server, timeout=60).ask("q", 0)

        began = time.monotonic()
        asyncio.run(give_up())
        assert time.monotonic() - began < SLOW  # and not a minute


class TestWaiting:
    @pytest.fixture
    def waits(self, monkeypatch):
        """The seconds that the judge waits, which it then does not; the server's thread sleeps as ever."""
        waits, sleep = [], asyncio.sleep

        async def noted(seconds):
            if threading.current_thread() is threading.main_thread():
                waits.append(seconds)
                seconds = 0
            await sleep(seconds)

        monkeypatch.setattr(asyncio, "sleep", noted)
        return waits

    def test_each_wait_is_about_twice_the_one_before_and_comes_from_the_seed(self, server, monkeypatch, waits):
        monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 1.0)
        server.always = response("busy", 500)
        for seed in (1, 1, 2):
            with pytest.raises(JudgeFailure):
                ask(judge_at(server, retries=6), seed=seed)
        first, again, other = waits[:6], waits[6:12], waits[12:]
        assert first == again != other
        for wait, longest in zip(first, [1, 2, 4, 8, 16, http.LONGEST_WAIT], strict=True):
            assert longest / 2 <= wait <= longest

    @pytest.mark.parametrize(
        ("asked", "waited"),
        [
            ("7", 7),
            ("86400", http.LONGEST_WAIT),
            (formatdate(4e9, usegmt=True), http.LONGEST_WAIT),
            (formatdate(0, usegmt=True), http.FIRST_WAIT),
            ("0", http.FIRST_WAIT),
            ("-5", http.FIRST_WAIT),
            ("soon", http.FIRST_WAIT),
            ("9" * 400, http.FIRST_WAIT),
        ],
    )
    def test_a_server_may_ask_for_a_longer_wait_within_bounds(self, server, monkeypatch, waits, asked, waited):
        monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 1.0)
        server.script = [response("busy", 429, retry_after=asked)]
        assert ask(judge_at(server)) == "fine"
        assert len(waits) == 1
        assert waited / 2 <= waits[0] <= waited


class TestCache:
    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "deep" / "replies.jsonl"

    def test_a_question_is_asked_once_even_by_many_at_once_and_in_another_process(self, server, path):
        judge = judge_at(server, cache=str(path))
        assert ask_all(judge, ["q"] * 20 + ["other"]) == ["fine"] * 21
        assert len(server.bodies) == 2
        judges._replies.cache_clear()  # as a new process begins
        server.always = reply("changed")
        assert ask_all(judge, ["q", "other"]) == ["fine"] * 2
        assert len(path.read_text().splitlines()) == 2

    def test_whatever_changes_the_reply_is_another_question(self, server, path):
        judge = judge_at(server, cache=str(path))
        others = [judge.model_copy(update=u) for u in ({"model": "n"}, {"temperature": 1.0}, {"max_tokens": 9})]
        for one in [judge, *others, judge.model_copy(update={"timeout": 9.0})]:  # the last changes nothing
            ask(one)
        ask(judge, "q?")
        ask(judge, vote=1)
        assert len(server.bodies) == 6

    def test_without_a_cache_every_question_is_asked(self, server):
        ask_all(judge_at(server), ["q", "q"])
        assert len(server.bodies) == 2

    def test_a_failure_is_not_kept(self, server, path):
        server.script = [response("no", 400)]
        judge = judge_at(server, cache=str(path))
        with pytest.raises(JudgeFailure):
            ask(judge)
        assert ask(judge) == "fine"

    def test_who_waited_for_a_question_that_was_given_up_asks_it_himself(self, server, path):
        server.script = [hang]
        judge = judge_at(server, cache=str(path))

        async def two():
            first = asyncio.create_task(judge.ask("q", 0))
            await asyncio.to_thread(eventually, lambda: server.bodies)
            second = asyncio.create_task(judge.ask("q", 0))
            for _ in range(100):  # far more turns of the loop than it needs to begin
                await asyncio.sleep(0)
            first.cancel()
            return await second

        assert asyncio.run(two()) == "fine"
        assert len(server.bodies) == 2

    @pytest.mark.parametrize(
        "damaged",
        [
            b"{", b"7", b'{"key": "k"}', b'{"key": 1, "reply": "x"}', b'{"key": "k", "reply": 2}', b"\xff", b"[" * 9999,
        ],
    )  # fmt: skip
    def test_a_damaged_line_is_skipped_with_a_warning_and_the_others_count(self, server, path, caplog, damaged):
        judge = judge_at(server, cache=str(path))
        ask(judge)
        path.write_bytes(damaged + b"\n\n" + path.read_bytes())
        judges._replies.cache_clear()
        assert ask(judge) == "fine"
        assert len(server.bodies) == 1
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        assert f"{path}, line 1" in caplog.text

    def test_a_line_that_was_cut_by_a_kill_does_not_spoil_the_next(self, server, path, caplog):
        judge = judge_at(server, cache=str(path))
        ask(judge)
        path.write_bytes(path.read_bytes()[:-20])
        for _ in range(3):
            judges._replies.cache_clear()
            assert ask(judge) == "fine"
        assert len(server.bodies) == 2

    @pytest.mark.parametrize("field", ["cache", "transcript"])
    def test_a_file_that_cannot_be_is_named(self, server, tmp_path, field):
        with pytest.raises(ConfigError, match=f"judge.*{tmp_path}"):
            ask(judge_at(server, **{field: str(tmp_path)}))


class TestTranscript:
    def test_it_has_every_request_and_what_came_of_it(self, server, tmp_path):
        path = tmp_path / "deep" / "transcript.jsonl"
        server.script = [response("busy", 503), hang, response(said("x" * judges.LARGEST_REPLY))]
        judge = judge_at(server, transcript=str(path), timeout=1)
        with pytest.raises(JudgeFailure):
            ask(judge)
        assert ask(judge) == "fine"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["request"] for line in lines] == server.bodies
        assert [line.get("status") for line in lines] == [503, None, 200, 200]
        assert lines[1]["error"] == "TimeoutError"
        assert lines[2]["response"] is None
        assert json.loads(lines[3]["response"]) == said("fine")
        assert 1 <= lines[1]["seconds"] < SLOW


class TestKey:
    @pytest.fixture
    def judge(self, server, tmp_path, monkeypatch):
        monkeypatch.setenv("JUDGE_KEY", KEY)
        files = {name: str(tmp_path / name) for name in ("cache", "transcript")}
        return judge_at(server, key_env="JUDGE_KEY", **files)

    def test_it_is_nowhere_even_if_the_server_says_it(self, server, judge, tmp_path, caplog):
        caplog.set_level(logging.DEBUG)
        escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
        shown = [ask(judge, "a")]
        server.script = [
            reply(f"your key is {KEY}"),
            response(json.dumps(said("@")).replace("@", escaped)),
            *[response("x" * 190 + f"bad key {KEY}", 401)],
            response(said(None, key=KEY)),
        ]
        shown += [ask(judge, "b"), ask(judge, "c")]
        for prompt in "de":
            with pytest.raises(JudgeFailure) as failure:
                ask(judge, prompt)
            shown.append(str(failure.value))
        files = [Path(tmp_path, name).read_text() for name in ("cache", "transcript")]
        assert shown[1:3] == ["your key is [key]", "[key]"]
        for text in [*shown, *files, caplog.text, repr(judge), str(judge), dump_toml(judge)]:
            assert "sk-" not in text
        assert all(h["authorization"].endswith(KEY) for h in server.headers)

    @pytest.mark.parametrize("value", ["", "  ", "two\nlines", "schlüssel", "a b"])
    def test_a_variable_without_a_usable_key_is_named_and_its_value_is_not(self, judge, monkeypatch, value):
        monkeypatch.setenv("JUDGE_KEY", value)
        with pytest.raises(ConfigError, match="'JUDGE_KEY'") as error:
            ask(judge)
        assert not value.strip() or value not in str(error.value)


class TestSettings:
    def test_a_judge_is_rebuilt_from_its_data(self):
        judge = OpenAIJudge(url="https://judge.example:8443/v1/", model="m", key_env="K", cache="c.jsonl")
        assert build(OpenAIJudge, judge.as_data()) == judge
        assert judge.url == "https://judge.example:8443/v1"

    @pytest.mark.parametrize("url", ["http://[::1]:8000/v1", "http://127.0.0.1", "http://localhost:1/", "HTTP://a.b"])
    def test_addresses(self, url):
        assert OpenAIJudge(url=url, model="m").url == url.rstrip("/")

    @pytest.mark.parametrize(
        "url",
        [
            "", "127.0.0.1:8000", "ftp://a/v1", "file:///etc/passwd", "http://", "http://user:pass@a/v1", "http://a/v1?key=b",
            "http://a/v1#b", "http://a b/v1", "http://a:99999/v1", "http://a:x/v1", "http://[::1/v1", "http://a..b/v1",
            "http://" + "a" * 64, "http://ä.b/v1", "http://a/v1\n",
        ],
    )  # fmt: skip
    def test_what_is_no_address_is_refused(self, url):
        with pytest.raises(ConfigError, match="url"):
            build(OpenAIJudge, {"url": url, "model": "m"})
