"""http: a page that is another one than at the last look whose run ended well. One GET, through the address guard.

It is asked with the marks that the server gave it last (`ETag`, `Last-Modified`); whether it has changed is told by its
body, or by the part of it that is named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from nightporter.clock import Instant
from nightporter.errors import BadInput, NotPermitted
from nightporter.looks.file import one_of
from nightporter.outside import secrets
from nightporter.outside.http import Reply, Unreachable, Web
from nightporter.outside.options import mapping, typed
from nightporter.rules.looks import TIMEOUT, failed, nothing, of_watermark
from nightporter.runners import exits
from nightporter.runners import http as target
from nightporter.words import ErrorClass, Seen, Started, Work

_SHARED = ("url", "headers", "secret_headers", "allow_hosts")
_KEYS = (*_SHARED, "part", "first")
BODY_LIMIT = 4_000_000
"""Bytes of a page that are read."""
_MISSING = object()


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`url`, `headers`, `secret_headers` and `allow_hosts` as for a target. `part`: a JSON pointer (`/items/0/id`) to
    what of a JSON page counts. `first`: what the first look makes of what it finds, `baseline` or `wake`."""
    given = mapping(config, "http", known=_KEYS, short="url")
    shared = target.check({key: given[key] for key in _SHARED if key in given})
    part = typed(given, "http", "part", str, "")
    if part and not part.startswith("/"):
        raise BadInput(f"`http.part` cannot be {part!r}", why="it is a JSON pointer, which begins with /",
                       next="for example /items/0/id")
    found = {key: shared[key] for key in _SHARED if shared.get(key)}
    return {**found, **({"part": part} if part else {}), "first": one_of(given, "http", "first", ("baseline", "wake"))}


class Http:
    """Asks for pages through `web`."""

    kind = "http"
    launches = False

    def __init__(self, web: Web, now: Callable[[], Instant], limit: timedelta = TIMEOUT) -> None:
        self._web = web
        self._now = now
        self._limit = limit

    async def look(self, config: Mapping[str, Any], work: Work, before: Any, started: Started) -> Seen:
        marks = before if isinstance(before, Mapping) else {}
        try:
            reply = await self._web.fetch(
                "GET", config["url"], headers=_headers(config, marks), allow_hosts=config.get("allow_hosts", ()),
                timeout=self._limit, limit=BODY_LIMIT,
            )
        except NotPermitted as error:
            return failed(ErrorClass.PERMISSION, exits.one_line(error))
        except BadInput as error:
            return failed(ErrorClass.CONFIGURATION, exits.one_line(error))
        except Unreachable as error:
            return failed(ErrorClass.TRANSIENT, exits.one_line(error))
        except TimeoutError:
            return failed(ErrorClass.TIMEOUT, f"no complete answer within {self._limit.total_seconds():g} s")
        if reply.status == 304 and marks:
            return nothing()
        if not 200 <= reply.status < 300:
            return _refused(reply, self._now())
        return _compared(config, reply, before)


def _headers(config: Mapping[str, Any], marks: Mapping[str, Any]) -> dict[str, str]:
    headers = dict(config.get("headers", {}))
    for name, reference in config.get("secret_headers", {}).items():
        scheme, space, secret = reference.rpartition(" ")
        headers[name] = f"{scheme}{space}{secrets.resolve(secret)}"
    if marks.get("etag"):
        headers["If-None-Match"] = marks["etag"]
    elif marks.get("modified"):
        headers["If-Modified-Since"] = marks["modified"]
    return headers


def _refused(reply: Reply, now: Instant) -> Seen:
    if reply.status >= 500 or reply.status in (408, 429):
        return failed(ErrorClass.TRANSIENT, reply.line, reply.retry_after(now))
    return failed(ErrorClass.CONFIGURATION, reply.line)


def _compared(config: Mapping[str, Any], reply: Reply, before: Any) -> Seen:
    if reply.cut:
        return failed(ErrorClass.CONFIGURATION, f"the page is larger than {BODY_LIMIT} bytes")
    text, counted = reply.text, reply.body
    if part := config.get("part"):
        try:
            found = _part(json.loads(reply.body), part)
        except (ValueError, RecursionError) as error:
            return failed(ErrorClass.CONFIGURATION, f"the page is no JSON, so that nothing is at {part}: {error}")
        if found is _MISSING:
            return failed(ErrorClass.CONFIGURATION, f"the page has nothing at {part}")
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        counted = json.dumps(found, sort_keys=True).encode()
    now = {"mark": blake2b(counted, digest_size=16).hexdigest()}
    for key, header in (("etag", "etag"), ("modified", "last-modified")):
        if value := reply.headers.get(header, "")[:500]:
            now[key] = value
    return of_watermark(before, now, text, first_wakes=config["first"] == "wake")


def _part(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value
