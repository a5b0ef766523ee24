"""What an episode in Chromium may contact: sites with their ports, at addresses that were resolved once and checked."""

import asyncio
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

from chromium_pages import START, Listener, app_of, browser_pid, own_addresses, udp_ports, walk
from helpers import SLOW
from starlette.responses import RedirectResponse

from longstride.core.errors import EnvFailure, TaskError
from longstride.core.task import Task
from longstride.web.benchmarks.env import BenchmarkEnv
from longstride.web.chromium.env import ChromiumEnv
from longstride.web.chromium.gateway import Gateway
from longstride.web.chromium.host import host
from longstride.web.chromium.process import DESKTOP, DISABLED
from longstride.web.chromium.reach import Reach, site_of, sites_of


@pytest.fixture
def servers() -> Iterator[tuple[Listener, Listener]]:
    """Two servers on this machine that count what comes to them."""
    both = Listener(), Listener()
    yield both
    for server in both:
        server.close()


def port(server: Listener) -> str:
    return server.address.rpartition(":")[2]


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("http://a.test/x", "a.test:80"),
        ("https://A.test", "a.test:443"),
        ("http://a.test:443/", "a.test:443"),
        ("http://user:pw@a.test:8080/", "a.test:8080"),
        ("http://127.0.0.1:9/", "127.0.0.1:9"),
        ("http://[0:0::1]/", "[::1]:80"),
        ("http://bücher.test/", "xn--bcher-kva.test:80"),
        ("file:///etc/passwd", ""),
        ("javascript:x", ""),
        ("http://", ""),
        ("http://a.test:x/", ""),
        ("http://[::1", ""),
    ],
)
def test_a_site_is_a_host_and_a_port(url: str, site: str) -> None:
    assert site_of(url) == site


def test_a_site_that_a_person_names_without_a_port_has_the_ports_of_the_web() -> None:
    assert sites_of(["a.test", "b.test:7770"]) == {"a.test:80", "a.test:443", "b.test:7770"}
    with pytest.raises(TaskError, match=r"'http://a.test' is no site; expected a host"):
        sites_of(["http://a.test"])


PRIVATE = """127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 224.0.0.1 255.255.255.255 ::1
    :: fe80::1 fd00::1 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 2002:7f00:1::""".split()


@pytest.mark.parametrize("ip", PRIVATE)
def test_a_name_does_not_lead_to_a_private_address(ip: str) -> None:
    assert not Reach(network=frozenset({"a.test:80"})).allows_address("a.test", 80, ip)


@pytest.mark.parametrize(
    ("network", "name", "ip", "allowed"),
    [
        ("a.test:80", "a.test", "93.184.216.34", True),
        ("a.test:80", "a.test", "2606:2800:220:1::1", True),
        ("127.0.0.1:80", "127.0.0.1", "127.0.0.1", True),
        ("[::1]:80", "[::1]", "::1", True),
        ("10.0.0.5:80", "shop.lan", "10.0.0.5", True),
        ("10.0.0.5:81", "shop.lan", "10.0.0.5", False),
        ("localhost:80", "localhost", "127.0.0.1", True),
        ("localhost:80", "localhost", "::1", True),
        ("localhost:80", "localhost", "10.0.0.5", False),
        ("localhost:80", "a.test", "127.0.0.1", False),
    ],
)
def test_a_private_address_is_allowed_where_it_is_named_itself(network: str, name: str, ip: str, allowed: bool) -> None:
    assert (
        Reach(network=frozenset({network, f"{name}:80"} if allowed else {network})).allows_address(name, 80, ip)
        == allowed
    )


async def asked(gateway: Gateway, site: str, said: bytes = b"") -> tuple[int, bytes]:
    """The reply of the proxy to a request to connect to a site, and what then comes in answer to `said`."""
    name, _, port = site.rpartition(":")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.address.rpartition(":")[2]))
    try:
        writer.write(b"\x05\x01\x00")
        assert await reader.readexactly(2) == b"\x05\x00"
        request = b"\x05\x01\x00\x03" + bytes([len(name)]) + name.encode() + int(port).to_bytes(2)
        for byte in request:  # however it is cut
            writer.write(bytes([byte]))
            await writer.drain()
        reply = (await reader.readexactly(10))[1]
        writer.write(said)
        return reply, await asyncio.wait_for(reader.read(1000), SLOW) if said else b""
    finally:
        writer.close()


@pytest.fixture
async def resolved(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Addresses that names stand for in this test, each asked for once: the next time it is the next one."""
    names: dict[str, list[str]] = {}

    async def look_up(name: str, port: int, **_: Any) -> list[Any]:
        if name not in names:
            raise OSError("unknown name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (names[name].pop(0), port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    return names


async def test_the_proxy_leads_to_sites_that_are_allowed_and_to_no_other_port(servers) -> None:
    one, two = servers
    gateway = Gateway(Reach(network=frozenset({one.address, "127.0.0.1:80"})))
    await gateway.open()
    assert (await asked(gateway, one.address, b"hello"))[1].endswith(b"outside")
    assert one.calls == [b"hello"]
    _, answer = await asked(gateway, two.address, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403")
    assert (await asked(gateway, "elsewhere.test:443"))[0] == 2
    assert two.calls == [] and gateway.refused == {two.address: 1, "elsewhere.test:443": 1}
    await gateway.close()


async def test_a_name_is_resolved_once_whatever_its_server_says_later(servers, resolved) -> None:
    one, two = servers
    site = f"a.test:{port(one)}"
    resolved["a.test"] = ["127.0.0.1", "127.0.0.2"]
    gateway = Gateway(Reach(network=frozenset({site, one.address})))
    await gateway.open()
    for _ in range(3):
        assert (await asked(gateway, site, b"hello"))[0] == 0
    assert len(one.calls) == 3 and resolved["a.test"] == ["127.0.0.2"]
    await gateway.close()


async def test_a_name_that_stands_for_this_machine_is_refused(servers, resolved) -> None:
    one, _ = servers
    site = f"a.test:{port(one)}"
    resolved["a.test"] = ["127.0.0.1", "127.0.0.1"]
    gateway = Gateway(Reach(network=frozenset({site})))
    await gateway.open()
    assert (await asked(gateway, site))[0] == 4
    assert one.calls == [] and gateway.refused[site] == 1
    with pytest.raises(EnvFailure, match=r"is at 127\.0\.0\.1, which is no public address"):
        await gateway.addresses(site)
    await gateway.close()


async def test_a_host_that_is_named_without_a_port_does_not_open_its_other_ports(servers) -> None:
    """In links, forms, redirects, scripts and images alike."""
    one, two = servers
    other = f"http://localhost:{port(two)}"
    page = f"""<a href="{other}/link">a</a><form action="{other}/form"><button>b</button></form><a href=/away>c</a>
        <img src="{other}/img"><script>fetch('{other}/fetch', {{mode: 'no-cors'}})</script>"""
    apps = app_of({"/": page, "/away": RedirectResponse(f"{other}/redirected")}).apps
    reach = Reach(apps, frozenset({"localhost:80", f"localhost:{port(one)}"}))
    refused: list[str] = []
    steps = ("click [1]", "click [2]", "click [3]", f"goto {other}/", f"goto http://localhost:{port(one)}/")
    seen = await walk(ChromiumEnv(reach, "http://app.test"), *steps, refused=refused)
    assert seen[5] == "outside" and one.calls  # what is allowed is reached
    assert two.calls == []
    assert f"localhost:{port(two)}" in refused


async def test_a_task_opens_the_ports_of_its_addresses(servers) -> None:
    one, two = servers
    env = BenchmarkEnv(also=[two.address])
    start = f"http://localhost:{port(one)}/"
    await env.reset(Task(id="t", source="x", goal="g", start=start), 0)
    assert env.reach.network == {f"localhost:{port(one)}", two.address, f"127.0.0.1:{port(two)}"}
    assert await host().run(env.browser.call("GET", start)) == (200, b"outside")
    with pytest.raises(EnvFailure, match="none of the sites that the task allows"):
        await host().run(env.browser.call("GET", f"http://localhost:{port(two)}/"))
    await env.close()


async def test_what_chromium_asks_for_by_itself_is_refused() -> None:
    """LONGSTRIDE_SOAK=1 waits as long as it took to ask for the time and for updates."""
    await walk(ChromiumEnv(app_of({"/": "<p>x"}), "http://app.test"), "wait")
    chromium = host().chromium
    assert chromium is not None

    async def command() -> str:
        session = await chromium.browser.new_browser_cdp_session()
        return (await session.send("SystemInfo.getInfo"))["commandLine"]

    line = await host().run(command())
    assert f"--proxy-server={chromium.gateway.address}" in line
    assert "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1" in line
    assert set(re.findall(r"--disable-features=(\S+)", line)[-1].split(",")) == set(DISABLED)
    if "LONGSTRIDE_SOAK" in os.environ:
        await asyncio.sleep(60)
        assert chromium.gateway.refused  # it did ask


GATHERING = """<p>x</p><script>
    const over = async p => {
        while (p.iceGatheringState != 'complete') await new Promise(r => p.onicegatheringstatechange = r);
    };
    const offer = async (p, q) => {
        p.createDataChannel('x');
        await p.setLocalDescription(await p.createOffer());
        if (q) await q.setRemoteDescription(p.localDescription);
        if (q) await q.setLocalDescription(await q.createAnswer());
        if (q) await p.setRemoteDescription(q.localDescription);
    };
    const all = async () => {
        const asking = new RTCPeerConnection({iceServers: [{urls: SERVERS, username: 'secret', credential: 'x'}]});
        const calling = new RTCPeerConnection(), called = new RTCPeerConnection();
        await offer(asking);
        await offer(calling, called);
        const usernameFragment = /ice-ufrag:(.*)/.exec(called.localDescription.sdp)[1].trim();
        for (const candidate of PEERS) await calling.addIceCandidate({candidate, sdpMid: '0', usernameFragment});
        for (const p of [asking, calling]) await over(p);
        for (const way of QUIC) await new WebTransport(way).ready.catch(() => 0);
    };
    const gathered = Promise.race([all().then(() => 'all'), new Promise(r => setTimeout(r, 8000, 'not all'))]);
    </script>"""


async def test_a_page_sends_no_datagram_and_asks_the_gateway_where_webrtc_can_do_without() -> None:
    """It gathers candidates from servers over UDP, TCP and TLS, and tries those that it says are a peer's."""
    listeners = [Listener(ip) for ip in own_addresses()]
    servers, peers = [], ["candidate:1 1 udp 9 c0ffee00-0000-4000-8000-000000000000.local 9 typ host"]
    for listener in listeners:
        at, place = listener.address, listener.address.replace(":", " ")
        servers += [
            f"stun:{at}",
            *(f"{kind}:{at}?transport={by}" for kind in ("turn", "turns") for by in ("udp", "tcp")),
        ]
        peers += [f"candidate:2 1 udp 9 {place} typ host", f"candidate:3 1 tcp 9 {place} typ host tcptype passive"]
    page = GATHERING
    for name, value in (("SERVERS", servers), ("PEERS", peers), ("QUIC", [f"https://{r.address}/" for r in listeners])):
        page = page.replace(name, json.dumps(value))
    env = ChromiumEnv(Reach({"localhost": app_of({"/": page}).apps["app.test"]}), "http://localhost")
    try:
        await env.reset(START, 0)
        gathered = await host().run(env.browser.evaluate("gathered"))
        refused = env.browser.lease.gateway.refused
        assert [listener.datagrams() for listener in listeners] == [[] for _ in listeners]
        assert [listener.calls for listener in listeners] == [[] for _ in listeners]
        assert 5353 not in udp_ports(browser_pid())  # nobody is asked for a name by multicast (RFC 6762)
        assert gathered == "all" and all(refused[listener.address] for listener in listeners)
    finally:
        await env.close()
        for listener in listeners:
            listener.close()


async def test_a_page_starts_no_program_of_the_desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    for name in DESKTOP:
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$0 $@" >> {started}\n')
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    host().stop()  # the next one has this PATH
    page = (
        "<a href='mailto:a@b'>a</a><a href='news:b'>b</a><a href='x-b:c'>c</a><script>location = 'mailto:c@d'</script>"
    )
    seen = await walk(ChromiumEnv(app_of({"/": page}), "http://app.test"), "click [1]", "click [2]", "click [3]")
    host().stop()
    assert seen[3].startswith("a [1]") and not started.exists(), started.read_text()
