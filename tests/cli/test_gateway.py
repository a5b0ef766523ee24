"""`longstride gateway`: a policy for programs that are started by hand."""

import json
import socket
import threading
import time
import urllib.error
from pathlib import Path

import pytest
from adapter_runs import few_words
from gateway_programs import SUM, Refused, chat, post

from longstride.adapters.gateway.agents import Job
from longstride.cli.main import main


def test_each_new_key_is_an_episode_and_ends_when_the_program_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    codes: list[int] = []

    def job(key: str) -> Job:
        return Job(SUM, 0, f"http://127.0.0.1:{port}", key, tmp_path)

    def ask() -> None:
        until = time.monotonic() + 300
        go = [{"role": "user", "content": "go"}]
        while True:
            try:
                said = chat(job("first"), go)
                break
            except (urllib.error.URLError, Refused):  # it does not wait yet
                if time.monotonic() > until:
                    return
                time.sleep(0.05)
        chat(job("first"), [*go, said, {"role": "user", "content": "go"}])
        chat(job("second"), go)
        for key in ("first", "second", "third"):
            try:
                post(job(key), "/v1/episode/end", {"reward": 0.5} if key == "first" else {})
                codes.append(200)
            except Refused as e:
                codes.append(e.status)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    model, kept = few_words(tmp_path / "few", "go one"), tmp_path / "kept"
    words = ["--episodes", "2", "--port", str(port), "--out", str(kept), "--json"]
    assert main(["gateway", model, *words, "test_budget.turn_tokens=3"]) == 0
    asking.join()
    said = capsys.readouterr().out
    summary = json.loads(said[said.index("{") :])["summary"]
    assert (summary["episodes"], summary["failed"], summary["env_steps"], summary["reward"]) == (2, 0, 3, 0.25)
    assert codes == [200, 200, 401] and (kept / "report.html").is_file()


def test_what_cannot_be_served_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "base", "--episodes", "0"]) == 2
    assert main(["gateway", "base", "--quiet", "0"]) == 2
    assert main(["gateway", "base", "--port", "70000"]) == 2
    assert main(["gateway", "cql"]) == 2
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["gateway", "base", "--port", str(taken.getsockname()[1])]) == 2
    said = capsys.readouterr().err
    assert "--episodes is at least 1" in said and "--quiet is above 0" in said
    assert "has no language model" in said and "cannot listen on" in said
