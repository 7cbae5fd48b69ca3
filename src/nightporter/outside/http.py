"""HTTP to the outside: one request, one bounded answer, and no address that nobody allowed.

A name is resolved once, every address it has is checked, and the connection goes to a checked address; Host and SNI
keep the name. No redirects, no proxies, no cookies, and nothing of the environment. A host named in `allow_hosts`,
exactly, may be anywhere.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from nightporter.clock import Instant, instant
from nightporter.errors import BadInput, NightporterError
from nightporter.outside.addresses import host_key

if TYPE_CHECKING:
    import ssl

    import httpcore2
    import httpx2

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port to numeric addresses. Raises OSError."""

_CONNECT = 10.0
"""Seconds for one connection; the whole request has the caller's timeout."""
_KEEP = 5.0
"""Seconds an idle connection is kept: shorter than servers keep theirs, so that it is not closed under a request."""


class Unreachable(NightporterError):
    """No usable answer came: the network, the receiver, or a protocol broken half way. It may work later."""

    code = "unreachable"
    exit_code = 6


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `body` is cut to the limit; `cut` says whether it was."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    cut: bool = False

    @property
    def line(self) -> str:
        """`HTTP 200 OK`, in the standard's words and not the receiver's."""
        try:
            return f"HTTP {self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"HTTP {self.status}"

    @property
    def text(self) -> str:
        """The body as text in its declared character set, UTF-8 where none is declared or known."""
        from email.message import Message

        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        try:
            return self.body.decode(message.get_content_charset("utf-8"), errors="replace")
        except LookupError:
            return self.body.decode(errors="replace")

    def retry_after(self, now: Instant) -> timedelta | None:
        """What `Retry-After` asks for, counted from the receiver's own `Date` where it gives one; None if unusable."""
        value = self.headers.get("retry-after", "").strip()
        if value.isascii() and value.isdigit():
            return timedelta(seconds=min(int(value), 366 * 86_400))
        try:
            until = instant(parsedate_to_datetime(value).replace(tzinfo=UTC))
        except (ValueError, TypeError, IndexError):
            return None
        try:
            now = instant(parsedate_to_datetime(self.headers.get("date", "")).replace(tzinfo=UTC))
        except (ValueError, TypeError, IndexError):
            pass  # No usable clock on the other side: ours must do.
        return timedelta(microseconds=max(0, until - now))


def check_url(url: object, what: str) -> str:
    """The URL of a config. Raises BadInput unless it is http(s) with a host and without credentials."""
    from urllib.parse import urlsplit

    if not isinstance(url, str):
        raise BadInput(f"`{what}` is not an address", why="it takes text", next="for example https://example.com/in")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(mark.isspace() or not mark.isprintable() for mark in url):
        raise BadInput(f"`{what}` is not an address that can be called", why="it takes http:// or https:// and a host",
                       next="for example https://example.com/in")
    if parts.username or parts.password:
        raise BadInput(f"`{what}` has a user or password in it",
                       why="a secret written into a definition would be stored and shown",
                       next="remove it, and name a secret reference such as env:NAME instead")
    return url


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Web:
    """The way out. Keeps connections for reuse; bound to the event loop it is first used in, until `close`."""

    def __init__(self, *, resolve: Resolve = _resolve, tls: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pools: dict[bool, httpcore2.AsyncConnectionPool] = {}

    def prepare(self) -> None:
        """Import what requests need and read the certificates: some 100 ms, which `fetch` otherwise spends, in a
        thread, at its first call."""
        import httpx2

        import nightporter.outside.doorway  # noqa: F401 - imported for the time it takes

        if self._tls is None:
            self._tls = httpx2.create_ssl_context(trust_env=False)

    async def fetch(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"", allow_hosts: Iterable[str] = (),
        timeout: timedelta | None, limit: int,
    ) -> Reply:
        """Send one request and read its answer, `limit` bytes of it at most.

        Raises NotPermitted when the guard refuses, Unreachable when no usable answer came, TimeoutError when
        `timeout` is over first, and BadInput for what is no request (a header with a line break).
        """
        if self._tls is None:
            await asyncio.to_thread(self.prepare)
        import httpcore2
        import httpx2

        try:
            request = httpx2.Request(
                method, url, content=body,
                headers={"accept-encoding": "identity", "user-agent": "nightporter", **headers},
            )
        except (httpx2.InvalidURL, UnicodeError, TypeError, ValueError) as error:
            raise BadInput("the request cannot be made", why=str(error),
                           next="correct its address and headers") from error
        allowed = host_key(request.url.host) in {host_key(host) for host in allow_hosts}
        seconds = None if timeout is None else timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await _exchange(self._pool(allowed), request, limit)
        except httpcore2.LocalProtocolError as error:
            raise BadInput("the request cannot be sent", why=str(error),
                           next="correct its method and headers") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError,
                zlib.error) as error:
            if isinstance(error, TimeoutError):
                raise
            raise Unreachable(
                f"{request.url.host} gave no answer", why=_cause(error),
                next="look whether it is up; it will be tried again where that is allowed",
            ) from error

    async def close(self) -> None:
        """Close every connection. The next `fetch` opens new ones."""
        pools, self._pools = self._pools, {}
        if self._loop is asyncio.get_running_loop():
            for pool in pools.values():
                await pool.aclose()

    def _pool(self, allowed: bool) -> httpcore2.AsyncConnectionPool:
        import httpcore2

        from nightporter.outside.doorway import Doorway

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections cannot be carried into another loop; those of a closed one went with it.
            self._loop, self._pools = loop, {}
        if allowed not in self._pools:
            # Two pools, so that a connection made under allow_hosts is never found by a request without it.
            self._pools[allowed] = httpcore2.AsyncConnectionPool(
                ssl_context=self._tls, max_connections=None, max_keepalive_connections=20, keepalive_expiry=_KEEP,
                network_backend=Doorway(self._resolve, allowed),
            )
        return self._pools[allowed]


async def _exchange(pool: httpcore2.AsyncConnectionPool, request: httpx2.Request, limit: int) -> Reply:
    import httpcore2

    asked = httpcore2.Request(
        method=request.method.encode("ascii"),
        url=httpcore2.URL(scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port,
                          target=request.url.raw_path),
        headers=request.headers.raw, content=request.content,
        extensions={"timeout": {"connect": _CONNECT}},
    )
    response = await pool.handle_async_request(asked)
    try:
        headers: dict[str, str] = {}
        for name, value in response.headers:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        body = bytearray()
        stream: Any = response.stream
        async for chunk in stream:
            body += chunk
            if len(body) > limit:
                break
    finally:
        await response.aclose()
    return _bounded(response.status, headers, bytes(body), limit)


def _bounded(status: int, headers: dict[str, str], body: bytes, limit: int) -> Reply:
    # We ask for no encoding; a server that sends one all the same is unpacked, but not beyond the limit.
    if headers.get("content-encoding", "").strip().lower() in ("gzip", "x-gzip", "deflate") and body:
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        body = unpack.decompress(body, limit + 1)
    return Reply(status, headers, body[:limit], cut=len(body) > limit)


def _cause(error: BaseException) -> str:
    """The innermost error that says something."""
    said = str(error)
    cause = error.__cause__ or error.__context__
    while cause is not None:
        said = str(cause) or said
        cause = cause.__cause__ or cause.__context__
    return said or type(error).__name__
