"""Asks what `longstride serve sites` serves for all that its addresses allow, and for what they do not:
`python fuzz/sites.py --examples N`.

Needs schemathesis (`pip install schemathesis`), which makes requests from a description of all addresses and forms, one
after the other and in the order of links, and finds answers of status 500 and above. Ends with another code than 0
where there are any.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import uvicorn

from longstride.envs.sites import KINDS
from longstride.envs.sites.app import PAGES, POSTS, build_application
from longstride.envs.sites.world import make_world

QUERY = {"search": ["q"], "c/{name}": ["page", "hot", "on", "sale"], "login": ["next"]}
FIELDS = ("name", "next", "quantity", "nights", "text")


def description() -> dict[str, Any]:
    """OpenAPI of the embedded sites."""
    paths: dict[str, Any] = {"/": {"get": {"responses": {"200": {"description": "the index"}}}}}
    text, long = {"type": "string"}, {"enum": ["0", "9" * 18, "9" * 19, "9" * 5000]}
    worlds = [make_world(kind, 1) for kind in KINDS]
    names = [str(i) for i in range(3)] + [n for w in worlds for n in [*w.categories, *w.references, *w.places]]
    for method, routes in (("get", PAGES), ("post", POSTS)):
        for route in routes:
            path = "/{kind}/{seed}/" + route.replace(":number", "")
            given = [
                ("kind", {"anyOf": [{"enum": [*KINDS]}, text]}),
                ("seed", {"anyOf": [{"enum": ["1"]}, long, text]}),
            ]
            given += [(n, {"anyOf": [{"enum": names}, long, text]}) for n in ("id", "name") if f"{{{n}}}" in path]
            asked = [{"name": n, "in": "path", "required": True, "schema": schema} for n, schema in given]
            asked += [{"name": n, "in": "query", "schema": text} for n in QUERY.get(route, ())]
            asked += [{"name": "sid", "in": "cookie", "schema": text}]
            operation: dict[str, Any] = {"parameters": asked, "responses": {"200": {"description": "a page"}}}
            if method == "post":
                form = {"schema": {"type": "object", "properties": dict.fromkeys(FIELDS, text)}}
                operation["requestBody"] = {"content": {"application/x-www-form-urlencoded": form}}
            paths.setdefault(path, {})[method] = operation
    return {"openapi": "3.0.3", "info": {"title": "sites", "version": "1"}, "paths": paths}


def main() -> int:
    """Serves on a free port of loopback, and asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100, help="for each address (default: %(default)s)")
    args = parser.parse_args()
    server = uvicorn.Server(uvicorn.Config(build_application(), port=0, log_level="warning"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "openapi.json")
        path.write_text(json.dumps(description()))
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(path), "--url", f"http://127.0.0.1:{port}"]
        command += ["--checks", "not_a_server_error", "--max-examples", str(args.examples), "--mode", "all"]
        code = subprocess.run([*command, "--seed", "0"], cwd=folder).returncode
    server.should_exit = True
    thread.join(10)
    return code


if __name__ == "__main__":
    sys.exit(main())
