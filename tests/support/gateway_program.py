"""A program that asks a gateway and behaves as its argument says; nothing but the standard library."""

import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request


def ask(body, key=None, path="/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps({"model": "any", "messages": body}).encode()
    headers = {"authorization": f"Bearer {key or os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as e:
        return e.code


HELLO = [{"role": "user", "content": os.environ["LONGSTRIDE_GOAL"]}]
how = sys.argv[1]
if how == "lies":
    print(ask(HELLO, key="ls-" + "0" * 32))
    sys.exit()
if how == "silent":
    print(1)
    sys.exit()
if how == "garbage":
    for _ in range(200):
        ask(b"{" * 10)
    sys.exit()
if how == "careless":
    codes = [
        ask(b"no JSON"),
        ask(b"[1]"),
        ask(b'"' + b"x" * (5 << 20) + b'"'),
        ask([]),
        ask([{"role": "user", "content": 3}]),
    ]
    assert codes == [400, 400, 413, 400, 400], codes
first = ask(HELLO)
if how == "crash":
    raise ValueError("boom")
if how == "hang":
    time.sleep(600)
if how == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
if how == "forks":
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
if how == "floods":
    for _ in range(64):
        print("x" * (1 << 20), flush=True)
if how == "huge":
    print("9" * 1_000_000)
if how == "words":
    print("I think that went well")
if how == "status":
    print(1)
    sys.exit(3)
if how == "asks on":
    while ask(HELLO) != 429:
        pass
    print(json.dumps({"reward": 0.25, "terms": {"told": 1}}))
if how == "answers when told":
    while ask(HELLO) != 429:
        pass
    print("late")
if how == "crashes when told":
    while True:
        assert ask(HELLO) != 429
if how == "deaf when told":
    while True:
        ask(HELLO)
        time.sleep(0.05)
if how == "file":
    with open("result.json", "w") as file:
        json.dump({"reward": 0.5, "success": True, "answer": first}, file)
if how == "spoils":  # puts a link, or a pipe, where the task is
    os.remove("task.json")
    os.symlink(sys.argv[2], "task.json") if len(sys.argv) > 2 else os.mkfifo("task.json")
    os.chmod(".", 0)
if how == "task":
    with open(os.environ["LONGSTRIDE_TASK"]) as file:
        print(json.dumps({"reward": 1, "answer": file.read() + " ".join(sorted(os.environ))}))
if how in ("careless", "good"):
    print("some words before\n1")
