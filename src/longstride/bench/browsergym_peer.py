"""Measures BrowserGym in its own environment: run by that environment's Python, imports nothing of Longstride.

Reads one JSON object from standard input: `chromium` (path), `flags`, `delay` (seconds), `seed`, `plans` (actions by
task, see `bench.browser`). Its last line is a JSON object: `step` and `reset` (milliseconds by task), `versions`.
What always holds: an action that took no effect ends it with an error, for a step that does nothing is no step.
"""

import json
import statistics
import sys
import time

STATES = ("checked", "focused")


def main():
    asked = json.load(sys.stdin)
    import browsergym.core  # pyright: ignore[reportMissingImports]
    import browsergym.miniwob  # noqa: F401 # pyright: ignore[reportMissingImports]
    import gymnasium  # pyright: ignore[reportMissingImports]
    from playwright.sync_api import BrowserType

    launch = BrowserType.launch

    def launch_chromium(self, **settings):  # BrowserGym has a second browser, for its chat, that takes no settings
        settings["args"] = [*(settings.get("args") or ()), *asked["flags"]]
        return launch(self, **{**settings, "executable_path": asked["chromium"]})

    BrowserType.launch = launch_chromium
    browsergym.core._get_global_playwright()  # started once a process: no part of a reset
    found = {"step": {}, "reset": {}}
    for task, plan in asked["plans"].items():
        env = gymnasium.make(
            f"browsergym/miniwob.{task}",
            headless=True,
            pre_observation_delay=asked["delay"],
            disable_env_checker=True,
        )
        began = time.perf_counter()
        seen, _ = env.reset(seed=asked["seed"])
        found["reset"][task] = 1000 * (time.perf_counter() - began)
        steps = []
        for verb, role, place, words in plan:
            nodes = seen["axtree_object"]["nodes"]
            bid = [n["browsergym_id"] for n in nodes if n["role"]["value"] == role and "browsergym_id" in n][place]
            code = f"fill({bid!r}, {words!r})" if verb == "fill" else f"{verb}({bid!r})"
            before, began = state_of(nodes), time.perf_counter()
            seen, _, terminated, _, _ = env.step(code)
            steps.append(1000 * (time.perf_counter() - began))
            if seen["last_action_error"] or not (terminated or state_of(seen["axtree_object"]["nodes"]) != before):
                sys.exit(f"{task}: {code} took no effect: {seen['last_action_error']}")
        found["step"][task] = statistics.median(steps)
        env.close()
    from importlib.metadata import version

    found["versions"] = {name: version(name) for name in ("browsergym-core", "playwright")}
    print(json.dumps(found))


def state_of(nodes):
    """What of a page an action can change."""
    return [
        (
            n["role"]["value"],
            n.get("name", {}).get("value"),
            n.get("value", {}).get("value"),
            *(p["value"].get("value") for p in n.get("properties", ()) if p["name"] in STATES),
        )
        for n in nodes
    ]


if __name__ == "__main__":
    main()
