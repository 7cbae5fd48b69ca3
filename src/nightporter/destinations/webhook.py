"""webhook: the result as a signed POST, after the Standard Webhooks convention.

`webhook-id` is the same in every try, `webhook-timestamp` is the try's own, and `webhook-signature` is an HMAC-SHA256
over id, timestamp and body. The body has the same bytes in every try.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightporter.clock import SECOND, Instant
from nightporter.errors import BadInput, NotPermitted
from nightporter.outside import secrets
from nightporter.outside.addresses import check_hosts
from nightporter.outside.http import Reply, Unreachable, Web, check_url
from nightporter.outside.options import items, mapping, need, typed
from nightporter.words import Parcel, Reason, Receipt, Sent

_KEYS = ("url", "secret", "unsigned", "flat", "allow_hosts")
_RECEIVERS_IDS = ("webhook-receipt-id", "x-request-id", "request-id", "x-correlation-id", "cf-ray", "x-amzn-requestid")
_ANSWER = 64_000
"""Bytes of an answer that are read; nothing but its beginning is used."""


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`url`. `secret`: a reference, or several while one replaces another; or `unsigned: true`. `flat: true`: one
    level of texts for receivers that take nothing else. `allow_hosts`: hosts that may be private. Raises BadInput."""
    given = mapping(config, "webhook", known=_KEYS, short="url")
    check_url(need(given, "webhook", "url", "url: https://example.com/in"), "webhook.url")
    unsigned = typed(given, "webhook", "unsigned", bool, False)
    references = [secrets.check_reference(one, "webhook.secret") for one in items(given, "webhook", "secret")]
    if bool(references) == unsigned:
        raise BadInput(
            "`webhook` has both `secret` and `unsigned`" if unsigned else "`webhook` needs `secret`",
            why="a receiver cannot tell an unsigned message from a forged one, so that is said and not assumed",
            next="keep one of them" if unsigned else "write secret: env:NAME, or unsigned: true",
        )
    return {
        "url": given["url"], "secret": references, "unsigned": unsigned,
        "flat": typed(given, "webhook", "flat", bool, False),
        "allow_hosts": check_hosts(items(given, "webhook", "allow_hosts"), "webhook"),
    }


class Webhook:
    """Posts results through `web`. `now` stamps each try; `timeout` bounds it."""

    kind = "webhook"
    repeatable = True

    def __init__(self, web: Web, now: Callable[[], Instant], timeout: timedelta = timedelta(seconds=15)) -> None:
        self._web = web
        self._now = now
        self._timeout = timeout

    async def send(self, parcel: Parcel) -> Sent:
        config = parcel.config
        body = body_of(parcel)
        headers = {
            "content-type": "application/json",
            "webhook-id": parcel.event_id,
            "webhook-timestamp": str(self._now() // SECOND),
        }
        try:
            keys = [key_of(secrets.resolve(reference)) for reference in config.get("secret", ())]
            if keys:
                headers["webhook-signature"] = " ".join(
                    signature(key, parcel.event_id, headers["webhook-timestamp"], body) for key in keys)
            reply = await self._web.fetch("POST", config["url"], headers=headers, body=body,
                                          allow_hosts=config.get("allow_hosts", ()), timeout=self._timeout,
                                          limit=_ANSWER)
        except NotPermitted as error:
            return Sent(Receipt.PERMANENT, error=_one_line(error), reason=Reason.PERMISSION_DENIED)
        except BadInput as error:
            return Sent(Receipt.PERMANENT, error=_one_line(error), reason=Reason.CONFIGURATION)
        except Unreachable as error:
            return Sent(Receipt.TRANSIENT, error=_one_line(error), reason=Reason.UNREACHABLE)
        except TimeoutError:
            return Sent(Receipt.TRANSIENT, reason=Reason.UNREACHABLE,
                        error=f"no complete answer within {self._timeout.total_seconds():g} s")
        return self._receipt(reply)

    def _receipt(self, reply: Reply) -> Sent:
        status = reply.status
        if 200 <= status < 300:
            ids = [f"{name} {reply.headers[name][:100]}" for name in _RECEIVERS_IDS if reply.headers.get(name)]
            return Sent(Receipt.DELIVERED, evidence=", ".join([reply.line, *ids[:1]]), status=status)
        said = " ".join(reply.text.split())[:200]
        error = f"{reply.line}: {said}" if said else reply.line
        if status >= 500 or status in (408, 429):
            return Sent(Receipt.TRANSIENT, error=error, status=status, reason=Reason.UNREACHABLE,
                        retry_after=reply.retry_after(self._now()))
        if 300 <= status < 400:
            error = f"{reply.line}: redirects are not followed; write the final address"
        return Sent(Receipt.PERMANENT, error=error, status=status, reason=Reason.REJECTED_BY_RECEIVER)


def body_of(parcel: Parcel) -> bytes:
    """The bytes to send: the same for every try, whatever order the stored keys came back in."""
    body: Any = dict(_flat("", parcel.body)) if parcel.config.get("flat") else parcel.body
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(errors="replace")


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """`{"data": {"text": "x"}}` as `data.text`: `x`; list items count from 0; null is empty, true is `true`."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), one)
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            yield from _flat(f"{prefix}.{number}", one)
    elif value is None:
        yield prefix, ""
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value)


def key_of(secret: str) -> bytes:
    """The key in a signing secret: base64 after `whsec_`. Without the prefix, base64 of 24 to 64 bytes is a key too,
    and any other text is a key as it stands. Raises BadInput."""
    encoded = secret.removeprefix("whsec_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if encoded != secret:
        if key:
            return key
        raise BadInput("the signing secret cannot be used", why="what follows whsec_ is no base64",
                       next="write it as the receiver shows it")
    return key if 24 <= len(key) <= 64 else secret.encode()


def signature(key: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    """One entry of `webhook-signature`."""
    digest = hmac.new(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _one_line(error: BadInput | NotPermitted | Unreachable) -> str:
    return "; ".join(part for part in (error.what, error.why, error.next) if part)
