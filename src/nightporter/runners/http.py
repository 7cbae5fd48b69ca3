"""http: one request to an address; the body of a 2xx answer is the report.

Every request carries the run's id as `Idempotency-Key`, so that a receiver can tell a repeated attempt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nightporter.clock import Instant
from nightporter.errors import BadInput, NotPermitted
from nightporter.outside import secrets
from nightporter.outside.addresses import check_hosts
from nightporter.outside.http import Reply, Unreachable, Web, check_url
from nightporter.outside.options import items, mapping, need, texts, typed, wrong
from nightporter.runners import exits
from nightporter.runners.filling import filled
from nightporter.words import Desk, Ended, Ending, ErrorClass, Reason, Work

_KEYS = ("url", "method", "headers", "secret_headers", "json", "body", "expect", "allow_hosts")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "idempotency-key"})


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`url`. `method`: GET, or POST where there is a body. `headers`. `secret_headers`: names to references, a scheme
    before it (`Bearer env:TOKEN`). `json` or `body`: what to send; a POST, PUT or PATCH with neither sends the firing's
    payload. `expect`: the statuses that are a success, by default 2xx. `allow_hosts`: hosts that may be private.
    """
    given = mapping(config, "http", known=_KEYS, short="url")
    check_url(need(given, "http", "url", "url: https://example.com/status"), "http.url")
    if "json" in given and "body" in given:
        raise BadInput("`http` has both `json` and `body`", why="only one of them can be sent", next="remove one")
    typed(given, "http", "body", str, "")
    default = "POST" if "json" in given or "body" in given else "GET"
    method = typed(given, "http", "method", str, default).upper()
    if not _TOKEN.fullmatch(method):
        raise wrong("http", "method", given["method"], "a method such as GET or POST")
    given["method"] = method
    given["headers"] = texts(given, "http", "headers")
    given["secret_headers"] = texts(given, "http", "secret_headers")
    for reference in given["secret_headers"].values():
        secrets.check_reference(reference.rpartition(" ")[2])
    for name in (*given["headers"], *given["secret_headers"]):
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise BadInput(f"`http.headers` cannot have {name!r}", why="it is no header name, or one the desk sets",
                           next=f"remove {name!r}")
    given["allow_hosts"] = check_hosts(items(given, "http", "allow_hosts"), "http")
    expect = given.get("expect", [])
    statuses = expect if isinstance(expect, (list, tuple)) else [expect]
    if not all(isinstance(one, int) and not isinstance(one, bool) and 100 <= one <= 599 for one in statuses):
        raise wrong("http", "expect", expect, "a status or a list of statuses, such as 200")
    given["expect"] = list(statuses)
    return given


class Http:
    """Makes requests through `web`; `now` tells when a `Retry-After` date is."""

    kind = "http"
    opaque = True

    def __init__(self, web: Web, now: Callable[[], Instant]) -> None:
        self._web = web
        self._now = now

    async def run(self, work: Work, desk: Desk) -> Ended:
        config = work.config
        try:
            headers, body = _request(work)
            reply = await self._web.fetch(
                config.get("method", "GET"), config["url"], headers=headers, body=body,
                allow_hosts=config.get("allow_hosts", ()), timeout=work.timeout, limit=work.output_limit,
            )
        except NotPermitted as error:
            return Ended.failed(ErrorClass.PERMISSION, exits.one_line(error))
        except BadInput as error:
            return exits.misconfigured(error)
        except Unreachable as error:
            return Ended.failed(ErrorClass.TRANSIENT, exits.one_line(error))
        except TimeoutError:
            assert work.timeout is not None
            return Ended.timed_out(f"no complete answer within its timeout of {work.timeout.total_seconds():g} s")
        return self._ended(config, reply)

    def _ended(self, config: Mapping[str, Any], reply: Reply) -> Ended:
        status = reply.status
        expected = config.get("expect") or ()
        text = reply.text + ("\n[cut here: there was more]" if reply.cut else "")
        if status in expected or (not expected and 200 <= status < 300):
            return Ended.ok(text, data=_data(reply))
        wait = reply.retry_after(self._now())
        if status in (429, 503) and wait is not None:
            return Ended(Ending.HOLD, text=text, reason=Reason.PROVIDER_UNAVAILABLE, retry_after=wait,
                         error=f"{reply.line}: it asks to be called again in {wait.total_seconds():g} s")
        if status >= 500 or status in (408, 429):
            return Ended.failed(ErrorClass.TRANSIENT, reply.line, text=text, retry_after=wait)
        if 300 <= status < 400 and "location" in reply.headers:
            where = reply.headers["location"][:300]
            error = f"{reply.line}: it points to {where!r}, and redirects are not followed; write the final address"
        elif expected:
            error = f"{reply.line}, and `expect` takes {', '.join(str(one) for one in expected)}"
        else:
            error = f"{reply.line}: {_first_line(text)}".rstrip(": ")
        return Ended.failed(ErrorClass.CONFIGURATION, error, text=text)


def _request(work: Work) -> tuple[dict[str, str], bytes]:
    config = work.config
    headers = dict(config.get("headers", {}))
    for name, reference in config.get("secret_headers", {}).items():
        scheme, space, secret = reference.rpartition(" ")
        headers[name] = f"{scheme}{space}{secrets.resolve(secret)}"
    headers["Idempotency-Key"] = work.run_id
    if "body" in config:
        return headers, filled(config["body"], work.look).encode()
    if "json" in config:
        value = filled(config["json"], work.look)
    elif config.get("method") in _WITH_BODY and work.payload is not None:
        value = work.payload
    else:
        return headers, b""
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return headers, json.dumps(value, ensure_ascii=False).encode()


def _data(reply: Reply) -> Any:
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if reply.cut or not (kind == "application/json" or kind.endswith("+json")):
        return None
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None  # It calls itself JSON and is none; the text stands as it came.


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")
