"""HTTP to the outside: what is sent, what is taken, and what a broken receiver comes to."""

from __future__ import annotations

import gzip
import socket
import ssl
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest
from receiver import HANG, Receiver, answer

from nightporter.clock import SECOND, Instant
from nightporter.errors import BadInput
from nightporter.outside.http import Reply, Unreachable, Web, check_url

SECONDS = timedelta(seconds=10)
CERTIFICATE = Path(__file__).parent / "data" / "receiver.pem"


async def fetch(web: Web, url: str, *, limit: int = 1000, timeout: timedelta = SECONDS,
                headers: dict[str, str] | None = None) -> Reply:
    return await web.fetch("POST", url, headers=headers or {}, body=b"given", allow_hosts=["127.0.0.1"],
                           timeout=timeout, limit=limit)


async def test_a_request_arrives_as_it_was_made_and_its_answer_comes_back() -> None:
    async with Receiver(answer(201, "made", x_id="7")) as receiver:
        reply = await fetch(Web(), receiver.url, headers={"X-Own": "yes"})
    assert (reply.status, reply.line, reply.text, reply.headers["x-id"]) == (201, "HTTP 201 Created", "made", "7")
    (asked,) = receiver.asked
    assert (asked.method, asked.target, asked.body, asked.headers["x-own"]) == ("POST", "/in", b"given", "yes")
    assert asked.headers["user-agent"] == "nightporter"


async def test_a_connection_is_used_again_and_cookies_are_not() -> None:
    web = Web()
    async with Receiver(answer(set_cookie="who=us")) as receiver:
        for _ in range(3):
            await fetch(web, receiver.url)
        assert receiver.connections == 1
        assert all("cookie" not in asked.headers for asked in receiver.asked)
    await web.close()


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    async with Receiver() as inner:
        async with Receiver(answer(302, location=inner.url)) as receiver:
            assert (await fetch(Web(), receiver.url)).status == 302
        assert inner.asked == []


async def test_proxy_variables_do_not_lead_around_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receiver() as proxy, Receiver(answer(200, "direct")) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await fetch(Web(), receiver.url)).text == "direct"
        assert proxy.asked == []


async def test_an_answer_beyond_the_limit_is_cut() -> None:
    async with Receiver(answer(200, "x" * 500_000)) as receiver:
        reply = await fetch(Web(), receiver.url, limit=10)
    assert (reply.body, reply.cut) == (b"x" * 10, True)


async def test_no_more_of_an_answer_is_waited_for_than_is_kept() -> None:
    async with Receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 11) as receiver:
        reply = await fetch(Web(), receiver.url, limit=10)
    assert (reply.body, reply.cut) == (b"x" * 10, True)


async def test_a_packed_answer_is_unpacked_within_the_limit() -> None:
    bomb = gzip.compress(b"x" * 50_000_000)
    async with Receiver(answer(200, gzip.compress(b"plain"), content_encoding="gzip"),
                        answer(200, bomb, content_encoding="gzip")) as receiver:
        assert (await fetch(Web(), receiver.url)).text == "plain"
        tracemalloc.start()
        reply = await fetch(Web(), receiver.url, limit=100_000)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (len(reply.body), reply.cut) == (100_000, True)
    assert most < 20_000_000, "50 MB were unpacked"


async def test_a_receiver_that_hangs_is_left_when_the_time_is_over() -> None:
    async with Receiver(HANG) as receiver:
        with pytest.raises(TimeoutError):
            await fetch(Web(), receiver.url, timeout=timedelta(seconds=0.1))


async def test_a_receiver_that_drips_is_left_when_the_time_is_over() -> None:
    async with Receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this") as receiver:
        with pytest.raises(TimeoutError):
            await fetch(Web(), receiver.url, timeout=timedelta(seconds=0.1))


@pytest.mark.parametrize("garbage", [
    b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00\x01\x02\r\n\r\n", b"HTTP/1.1 banana\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nnot packed",
])
async def test_a_receiver_that_answers_garbage_is_unreachable(garbage: bytes) -> None:
    async with Receiver(garbage) as receiver:
        with pytest.raises(Unreachable) as caught:
            await fetch(Web(), receiver.url)
    assert caught.value.why


async def test_nobody_listening_is_unreachable_and_says_why() -> None:
    async with Receiver() as receiver:
        url = receiver.url
    with pytest.raises(Unreachable) as caught:
        await fetch(Web(), url)
    assert "gave no answer" in caught.value.what
    assert caught.value.why


async def test_a_name_that_nobody_has_is_unreachable() -> None:
    async def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(Unreachable) as caught:
        await fetch(Web(resolve=nobody), "http://nobody.test/")
    assert "Name or service not known" in caught.value.why


async def test_a_header_with_a_line_break_is_no_request() -> None:
    async with Receiver() as receiver:
        with pytest.raises(BadInput):
            await fetch(Web(), receiver.url, headers={"x": "a\r\nx-forged: yes"})
        assert receiver.asked == []


def tls_receiver(names: list[str]) -> tuple[Receiver, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(CERTIFICATE)
    server.sni_callback = lambda _, name, __: names.append(name)
    client = ssl.create_default_context(cafile=str(CERTIFICATE))
    return Receiver(answer(200, "safe"), tls=server), client


async def here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_host_and_server_name_stay_the_name_while_the_connection_goes_to_the_checked_address() -> None:
    names: list[str] = []
    receiver, trusting = tls_receiver(names)
    async with receiver:
        web = Web(resolve=here, tls=trusting)
        reply = await web.fetch("GET", f"https://receiver.test:{receiver.port}/", headers={},
                                allow_hosts=["receiver.test"], timeout=SECONDS, limit=100)
        await web.close()
    assert reply.text == "safe"
    assert names == ["receiver.test"]
    assert receiver.asked[0].headers["host"] == f"receiver.test:{receiver.port}"


async def test_a_certificate_for_another_name_is_unreachable() -> None:
    receiver, trusting = tls_receiver([])
    async with receiver:
        with pytest.raises(Unreachable) as caught:
            await Web(resolve=here, tls=trusting).fetch(
                "GET", f"https://other.test:{receiver.port}/", headers={}, allow_hosts=["other.test"], timeout=SECONDS,
                limit=100)
    assert "certificate" in caught.value.why.lower()


@pytest.mark.parametrize("url", [
    "", "example.com", "ftp://example.com", "file:///etc/passwd", "http://", "http:///path", "http://exa mple.com",
    "http://[::1", "http://a:99999/", "https://example.com/\n", "gopher://x", 7, None,
])
def test_what_is_no_address_is_refused(url: object) -> None:
    with pytest.raises(BadInput, match=r"`http\.url`"):
        check_url(url, "http.url")


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(BadInput) as caught:
        check_url("https://me:hunter2@example.com/", "http.url")
    assert "hunter2" not in str(caught.value)
    assert "env:NAME" in caught.value.next


@pytest.mark.parametrize(("headers", "wait"), [
    ({"retry-after": "120"}, timedelta(seconds=120)),
    ({"retry-after": " 0 "}, timedelta(0)),
    ({"retry-after": "Wed, 21 Oct 2015 07:30:00 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, timedelta(minutes=2)),
    ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, timedelta(seconds=50)),
    ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:30:00 GMT"}, timedelta(0)),
    ({"retry-after": "99999999999999999999"}, timedelta(days=366)),
    ({"retry-after": "soon"}, None), ({"retry-after": "-5"}, None), ({"retry-after": "²"}, None), ({}, None),
])
def test_retry_after_is_counted_on_the_receivers_clock(headers: dict[str, str], wait: timedelta | None) -> None:
    assert Reply(503, headers, b"").retry_after(Instant(10 * SECOND)) == wait


def test_a_body_is_read_in_its_declared_character_set() -> None:
    assert Reply(200, {"content-type": "text/plain; charset=latin-1"}, b"caf\xe9").text == "café"
    assert Reply(200, {"content-type": "text/plain; charset=klingon"}, "café".encode()).text == "café"
    assert Reply(200, {}, b"\xff").text == "\N{REPLACEMENT CHARACTER}"
