"""A server of the Model Context Protocol, over stdio, with three tools; its argument says how it misbehaves."""

import json
import os
import subprocess
import sys
import time

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
TOOLS = [
    {
        "name": "add", "description": "Adds two numbers.",
        "inputSchema": {
            "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"], "additionalProperties": False,
        },
    },
    {
        "name": "shelf", "description": "Says what stands on a shelf.",
        "inputSchema": {
            "type": "object",
            "properties": {"row": {"enum": ["top", "low"]}, "word": {"type": "string", "pattern": "(a+)+$"}},
        },
    },
    {"name": "env", "description": "", "inputSchema": {"type": "object"}},
]  # fmt: skip
LISTED = {
    "schema": {"name": "add", "inputSchema": {"properties": {"a": {"$ref": "http://127.0.0.1:9/a"}}}},
    "nameless": {"name": "two words", "inputSchema": {}},
    "long name": {"name": "n" * 129, "inputSchema": {}},
    "null": {"name": "add", "inputSchema": {"type": "object", "required": None}},
    "many": {"name": "add", "inputSchema": {"properties": {f"p{i}": {} for i in range(60_000)}}},
    "half name": {"name": "add\ud800\x1b[31m", "inputSchema": {"properties": {"\udfff": {"type": "integer"}}}},
}
"""The tool that is listed by a server that lists one."""
FLOODS = {"flood of lines": "{}\n" * 1000, "flood of noise": "noise " * 1000}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(name, arguments):
    if HOW == "die":
        print("out of memory", file=sys.stderr, flush=True)
        sys.exit(3)
    if HOW == "hang":
        time.sleep(60)
    if HOW == "flood":
        print("x" * (5 << 20), flush=True)
    if HOW == "half":
        return {"content": [{"type": "text", "text": "half \ud800 a character"}]}
    while HOW in FLOODS:
        sys.stdout.write(FLOODS[HOW])
    if HOW in ("leave", "leave and end"):  # something that is in no group of its, and whose parent has ended
        started = "import subprocess as s; print(s.Popen(['sleep', '60'], stdout=-3, start_new_session=True).pid)"
        child = subprocess.run([sys.executable, "-c", started], stdout=subprocess.PIPE, start_new_session=True)
        with open(sys.argv[2], "wb") as file:
            file.write(child.stdout)
        if HOW == "leave and end":
            sys.exit(5)
    if HOW == "deep":
        return {"content": [], "x": json.loads("[" * 70 + "]" * 70)}
    if HOW == "parts":
        return {"content": [{"type": "text", "text": f"part {k}"} for k in range(30_000)]}
    if HOW == "escape":
        return {"content": [{"type": "text", "text": "\x1b]0;owned\x07 \x9b31m said"}], "isError": "false"}
    if HOW == "list":
        return ["no", "object"]
    if name == "add":
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    if name == "shelf":
        data = {"picture": "iVBORw0K", "broken": "iV*"}.get(HOW, "")
        parts = [{"type": "image", "data": data, "mimeType": "image/png"}, {"type": "text", "text": "a red lamp"}]
        return {"content": parts} if arguments else {"content": parts[1:], "isError": True}
    return {
        "content": [{"type": "resource", "resource": {"uri": "x", "text": f"pid {os.getpid()} {sorted(os.environ)}"}}]
    }


if HOW == "early":
    sys.exit("no configuration")
print("a line that is no message", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        send({"id": 900, "method": "ping"})
        send({"id": 901, "method": "sampling/createMessage", "params": {}})
        send({"method": "notifications/message", "params": {}})
        info = {"name": "test", "version": "1"}
        send({"id": asked["id"], "result": {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}})
    elif asked.get("method") == "tools/list":
        first = "cursor" not in asked["params"]
        tools = TOOLS[:2] if first else TOOLS[2:]
        if HOW in LISTED:
            tools = [LISTED[HOW]]
        more = {"nextCursor": "2"} if first and HOW not in LISTED or HOW == "endless" else {}
        send({"id": asked["id"], "result": {"tools": tools, **more}})
    elif asked.get("method") == "tools/call":
        if asked["params"]["name"] == "shelf" and asked["params"]["arguments"].get("word") == "refuse":
            send({"id": asked["id"], "error": {"code": -32602, "message": "no such word"}})
        else:
            send({"id": asked["id"], "result": call(asked["params"]["name"], asked["params"]["arguments"])})
