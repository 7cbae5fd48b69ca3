"""The doorway: how a connection to the outside is opened, after its addresses were looked at.

Imported only when a request is made, because the HTTP library is.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable

import httpcore2

from nightporter.errors import NotPermitted
from nightporter.outside.addresses import objection


class Doorway(httpcore2.AsyncNetworkBackend):
    """Resolves once, checks every address, and connects to the numbers it checked."""

    def __init__(self, resolve: Callable[[str, int], Awaitable[list[str]]], allowed: bool) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._resolve(host.strip("[]"), port)
        except (socket.gaierror, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} cannot be resolved: {error}") from error
        if not self._allowed:
            for address in addresses:
                # One bad address among good ones is enough: the next look-up could give it first.
                if (what := objection(address)) is not None:
                    raise NotPermitted(
                        f"{host} may not be reached", why=f"it is at {address}, which is {what}",
                        next=f"if that is meant, add {host} to allow_hosts of this target or destination",
                    )
        failure: Exception = httpcore2.ConnectError(f"the name {host} has no address")
        for address in addresses:
            try:
                return await self._network.connect_tcp(address, port, timeout=timeout, local_address=local_address,
                                                       socket_options=socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise NotPermitted("a local socket may not be reached", why="targets are http:// and https:// addresses")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)
