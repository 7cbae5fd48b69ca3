"""The address guard: every spelling of an inside address is refused, and nothing else is."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from receiver import Receiver, answer

from nightporter.errors import BadInput, NotPermitted
from nightporter.outside.addresses import check_hosts, host_key, objection
from nightporter.outside.http import Unreachable, Web

SECONDS = timedelta(seconds=10)


@pytest.mark.parametrize("address", [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%1", "fec0::1", "ff02::1", "5f00::1", "2606:4700::1111%1",
])
def test_an_inside_address_is_refused(address: str) -> None:
    assert objection(address)


@pytest.mark.parametrize("address", [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1",
    "192.0.1.1", "192.167.255.255", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001::1", "2001:4860::8888",
])
def test_a_public_address_is_not(address: str) -> None:
    assert objection(address) is None


@pytest.mark.parametrize("host", [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[64:ff9b::127.0.0.1]",
    "localhost", "LOCALHOST", "localhost.", "１２７.０.０.１", "169.254.169.254", "[fe80::1]", "127.0.0.1.",
])
async def test_no_spelling_of_an_inside_host_reaches_it(host: str) -> None:
    async with Receiver() as receiver:
        with pytest.raises((NotPermitted, Unreachable, BadInput)):
            await Web().fetch("GET", f"http://{host}:{receiver.port}/", headers={}, timeout=SECONDS, limit=10)
        assert receiver.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost"])
async def test_the_refusal_says_what_to_do(host: str) -> None:
    with pytest.raises(NotPermitted) as caught:
        await Web().fetch("GET", f"http://{host}/", headers={}, timeout=SECONDS, limit=10)
    assert caught.value.what == f"{host} may not be reached"
    assert "127.0.0.1, which is this machine" in caught.value.why or "::1, which is this machine" in caught.value.why
    assert f"add {host} to allow_hosts" in caught.value.next


async def test_a_name_with_one_inside_address_among_public_ones_is_refused() -> None:
    async def mixed(host: str, port: int) -> list[str]:
        return ["8.8.8.8", "10.0.0.7"]

    with pytest.raises(NotPermitted, match=r"mixed\.test may not be reached"):
        await Web(resolve=mixed).fetch("GET", "http://mixed.test/", headers={}, timeout=SECONDS, limit=10)


async def test_a_name_is_resolved_once_and_the_checked_address_is_used() -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        # A second look-up would lead inside; none may happen.
        asked.append(host)
        return ["192.0.0.8"] if len(asked) > 1 else ["127.0.0.1"]

    async with Receiver() as receiver:
        reply = await Web(resolve=rebinding).fetch("GET", f"http://rebind.test:{receiver.port}/", headers={},
                                                   allow_hosts=["rebind.test"], timeout=SECONDS, limit=10)
        assert reply.status == 200
        assert receiver.asked[0].headers["host"] == f"rebind.test:{receiver.port}"
    assert asked == ["rebind.test"]


async def test_an_allowed_host_opens_no_door_for_another_at_the_same_place() -> None:
    web = Web()
    async with Receiver(answer()) as receiver:
        url = f"http://localhost:{receiver.port}/"
        await web.fetch("GET", url, headers={}, allow_hosts=["localhost"], timeout=SECONDS, limit=10)
        # The connection is still open; a request that was not allowed must not find it.
        with pytest.raises(NotPermitted):
            await web.fetch("GET", url, headers={}, timeout=SECONDS, limit=10)
        with pytest.raises(NotPermitted):
            await web.fetch("GET", f"http://127.0.0.1:{receiver.port}/", headers={}, allow_hosts=["localhost"],
                            timeout=SECONDS, limit=10)
        assert len(receiver.asked) == 1
    await web.close()


@pytest.mark.parametrize(("written", "meant"), [
    ("LocalHost", "localhost"), ("localhost.", "localhost"), ("[::1]", "::1"),
    ("bücher.example", "xn--bcher-kva.example"),
])
def test_a_host_is_allowed_however_it_is_written(written: str, meant: str) -> None:
    assert check_hosts([written], "http") == [meant]
    assert host_key(written) == meant


@pytest.mark.parametrize("host", ["", "*.example.com", "http://localhost", "localhost:80", "a/b", "10.0.0.0/8", "a b"])
def test_what_is_no_exact_host_cannot_be_allowed(host: str) -> None:
    with pytest.raises(BadInput, match="allow_hosts"):
        check_hosts([host], "http")


async def test_the_guard_is_used_in_every_loop() -> None:
    web = Web()

    async def refused() -> bool:
        try:
            await web.fetch("GET", "http://127.0.0.1/", headers={}, timeout=SECONDS, limit=10)
        except NotPermitted:
            return True
        return False

    assert await refused()
    assert await asyncio.to_thread(lambda: asyncio.run(refused()))
