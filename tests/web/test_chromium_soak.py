"""Many episodes in Chromium, with a tab and then the whole browser crashing on the way: nothing is left behind.

LONGSTRIDE_SOAK=1 makes it the long form, 500 episodes (some five minutes), which finds small leaks too; by default it
is 16 episodes, which find a process that stays and a context that is never closed."""

import asyncio
import os
import shutil
import signal

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

from chromium_pages import START, browser_pid, crash, env_of

from longstride.bench.processes import memory, tree
from longstride.core.errors import EnvFailure
from longstride.web.chromium.host import host

EPISODES = 500 if "LONGSTRIDE_SOAK" in os.environ else 16
SPARE = 3  # a service or a spare renderer that Chromium may keep; a tab that stays would be one process an episode
PAGE = "<h1>t</h1><input aria-label=a><button onclick=\"document.body.append('x'.repeat(99999))\">b</button>"


async def play(env, disturb=None) -> bool:
    """One short episode; whether it came to its end."""
    try:
        await env.reset(START, 0)
        if disturb is not None:
            await disturb(env)
        for said in ("fill [1] word", "click [2]"):
            await env.step(f"Action: {said}")
        return True
    except EnvFailure:
        return False
    finally:
        await env.close()


async def kill_tab(env) -> None:
    await host().run(crash(env.browser.tab.cdp))


async def kill_browser(env) -> None:
    os.kill(browser_pid(), signal.SIGKILL)


@pytest.mark.slow
async def test_episodes_with_crashes_leave_nothing_behind() -> None:
    template = env_of(PAGE)

    def env():
        return type(template)(template.reach, template.origin)

    async def many(n: int) -> int:
        done = 0
        for _ in range(n // 4):
            done += sum(await asyncio.gather(*[play(env()) for _ in range(4)]))
        return done

    async def settled(most: int = 0) -> tuple[int, float]:
        """Processes and MB of the browser, once at most `most` processes are left or a minute has passed."""
        pid = browser_pid()
        for _ in range(60):
            await asyncio.sleep(1)  # processes of closed tabs end when the machine has time for it
            if most == 0 or len(tree(pid)) <= most:
                break
        return len(tree(pid)), memory(pid)

    await many(4)
    processes, megabytes = await settled()
    done = await many(EPISODES // 4)
    assert await play(env(), kill_tab)  # costs steps, not the episode
    done += await many(EPISODES // 4)
    assert not await play(env(), kill_browser)
    done += await many(EPISODES // 2)
    most = processes + SPARE
    processes_after, megabytes_after = await settled(most)
    assert done == 2 * (EPISODES // 16 * 4) + EPISODES // 8 * 4
    assert processes_after <= most
    assert megabytes_after < megabytes + 60 + 20 * SPARE
