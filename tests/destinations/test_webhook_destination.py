"""webhook: what a receiver gets and can verify, and what its answer comes to."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from parcels import ENDED, LATER, parcel
from receiver import HANG, Receiver, answer
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from nightporter.clock import SECOND, Instant, SystemClock
from nightporter.destinations.webhook import Webhook, check, key_of, signature
from nightporter.errors import BadInput
from nightporter.outside.http import Web
from nightporter.words import Reason, Receipt, Sent

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()
    yield web
    await web.close()


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)


def config(receiver: Receiver, **more: Any) -> dict[str, Any]:
    signed = {} if "unsigned" in more or "secret" in more else {"secret": "env:HOOK_SECRET"}
    return check({"url": receiver.url, "allow_hosts": ["127.0.0.1"], **signed, **more})


async def send(web: Web, receiver: Receiver, *, now: Instant = ENDED, attempt: int = 1, text: str = "All quiet.",
               **more: Any) -> Sent:
    return await Webhook(web, lambda: now).send(parcel(config(receiver, **more), attempt=attempt, text=text))


async def test_a_receiver_verifies_what_it_gets(web: Web) -> None:
    # The receiver's library knows no other clock than the machine's.
    async with Receiver(answer(204)) as receiver:
        sent = await send(web, receiver, now=SystemClock().now(), text="né")
    (asked,) = receiver.asked
    verified = Verifier(SECRET).verify(asked.body, asked.headers)
    assert verified == parcel({}, text="né").body
    assert (asked.method, asked.headers["content-type"]) == ("POST", "application/json")
    assert sent == Sent(Receipt.DELIVERED, evidence="HTTP 204 No Content", status=204)
    with pytest.raises(WebhookVerificationError):
        Verifier(SECRET).verify(asked.body + b" ", asked.headers)


async def test_a_second_try_has_the_same_id_and_bytes_and_a_time_of_its_own(web: Web) -> None:
    assert Webhook(web, lambda: ENDED).repeatable
    async with Receiver(answer(500), answer(200)) as receiver:
        await send(web, receiver)
        await send(web, receiver, now=LATER, attempt=2)
    first, second = receiver.asked
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "evt_1"
    assert first.headers["webhook-timestamp"] == str(ENDED // SECOND)
    assert second.headers["webhook-timestamp"] == str(LATER // SECOND)
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


async def test_the_bytes_do_not_depend_on_the_order_the_store_gave_the_keys_in(web: Web) -> None:
    async with Receiver() as receiver:
        one = parcel(config(receiver))
        await Webhook(web, lambda: ENDED).send(one)
        turned = {key: one.body[key] for key in reversed(list(one.body))}
        await Webhook(web, lambda: ENDED).send(
            type(one)(**{name: getattr(one, name) for name in one.__slots__} | {"body": turned}))
    assert receiver.asked[0].body == receiver.asked[1].body


async def test_while_one_secret_replaces_another_both_sign(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_SECRET", "whsec_" + base64.b64encode(b"n" * 32).decode())
    async with Receiver() as receiver:
        await send(web, receiver, secret=["env:NEW_SECRET", "env:HOOK_SECRET"])
    first, second = receiver.asked[0].headers["webhook-signature"].split(" ")
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    assert second == signature(key, "evt_1", str(ENDED // SECOND), receiver.asked[0].body)
    assert first != second


async def test_an_unsigned_message_has_no_signature(web: Web) -> None:
    async with Receiver() as receiver:
        assert (await send(web, receiver, unsigned=True)).receipt == Receipt.DELIVERED
    assert "webhook-signature" not in receiver.asked[0].headers
    assert receiver.asked[0].headers["webhook-id"] == "evt_1"


async def test_a_flat_message_has_one_level_of_texts(web: Web) -> None:
    async with Receiver() as receiver:
        destination = Webhook(web, lambda: ENDED)
        await destination.send(parcel(config(receiver, flat=True), data={"rows": [1, True]}))
    flat = json.loads(receiver.asked[0].body)
    assert all(isinstance(value, str) for value in flat.values())
    assert flat["type"] == "automation.execution.succeeded"
    assert (flat["data.text"], flat["data.reason"]) == ("All quiet.", "")
    assert (flat["data.data.rows.0"], flat["data.data.rows.1"]) == ("1", "true")


async def test_the_receivers_own_id_is_evidence(web: Web) -> None:
    async with Receiver(answer(202, x_request_id="req_9")) as receiver:
        assert (await send(web, receiver)).evidence == "HTTP 202 Accepted, x-request-id req_9"


@pytest.mark.parametrize(("status", "headers", "receipt", "wait"), [
    (500, {}, Receipt.TRANSIENT, None), (503, {"retry_after": "120"}, Receipt.TRANSIENT, 120),
    (429, {"retry_after": "7"}, Receipt.TRANSIENT, 7), (408, {}, Receipt.TRANSIENT, None),
    (400, {}, Receipt.PERMANENT, None), (401, {}, Receipt.PERMANENT, None), (404, {}, Receipt.PERMANENT, None),
    (410, {"retry_after": "7"}, Receipt.PERMANENT, None), (302, {"location": "/x"}, Receipt.PERMANENT, None),
])
async def test_each_status_comes_to_what_it_means(
    web: Web, status: int, headers: dict[str, str], receipt: Receipt, wait: int | None,
) -> None:
    async with Receiver(answer(status, "not\nnow", **headers)) as receiver:
        sent = await send(web, receiver)
    assert (sent.receipt, sent.status, sent.evidence) == (receipt, status, "")
    assert sent.retry_after == (None if wait is None else timedelta(seconds=wait))
    assert sent.reason == (Reason.UNREACHABLE if receipt == Receipt.TRANSIENT else Reason.REJECTED_BY_RECEIVER)
    assert sent.error.startswith(f"HTTP {status}")
    assert status == 302 or sent.error.endswith(": not now")
    assert len(receiver.asked) == 1


async def test_a_receiver_that_hangs_answers_garbage_or_is_not_there_is_transient(web: Web) -> None:
    hasty = Webhook(web, lambda: ENDED, timeout=timedelta(seconds=0.1))
    async with Receiver(HANG) as receiver:
        sent = await hasty.send(parcel(config(receiver)))
    assert (sent.receipt, sent.error) == (Receipt.TRANSIENT, "no complete answer within 0.1 s")
    async with Receiver(b"\x00garbage\r\n\r\n") as receiver:
        assert (await send(web, receiver)).receipt == Receipt.TRANSIENT
    gone = await send(web, receiver)
    assert (gone.receipt, gone.reason) == (Receipt.TRANSIENT, Reason.UNREACHABLE)


async def test_an_inside_address_that_is_not_allowed_is_refused(web: Web) -> None:
    async with Receiver() as receiver:
        sent = await Webhook(web, lambda: ENDED).send(parcel(check({"url": receiver.url, "unsigned": True})))
        assert (sent.receipt, sent.reason) == (Receipt.PERMANENT, Reason.PERMISSION_DENIED)
        assert "add 127.0.0.1 to allow_hosts" in sent.error
        assert receiver.connections == 0


async def test_a_secret_that_is_not_there_sends_nothing(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receiver() as receiver:
        monkeypatch.delenv("HOOK_SECRET")
        sent = await send(web, receiver)
        assert (sent.receipt, sent.reason) == (Receipt.PERMANENT, Reason.CONFIGURATION)
        assert "env:HOOK_SECRET is not there" in sent.error
        monkeypatch.setenv("HOOK_SECRET", "whsec_%%%")
        sent = await send(web, receiver)
        assert "no base64" in sent.error
        assert "%%%" not in sent.error
        assert receiver.asked == []


def test_the_reference_signature_is_ours() -> None:
    made = signature(key_of(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_without_the_prefix_is_base64_where_it_can_be_a_key() -> None:
    assert key_of(SECRET.removeprefix("whsec_")) == key_of(SECRET)
    assert key_of("hunter2") == b"hunter2"
    assert key_of("aaaa") == b"aaaa"


@pytest.mark.parametrize(("given", "said"), [
    ({"url": "http://a/"}, "`webhook` needs `secret`"),
    ({"url": "http://a/", "unsigned": False}, "`webhook` needs `secret`"),
    ({"url": "http://a/", "unsigned": True, "secret": "env:A"}, "both `secret` and `unsigned`"),
    ({"url": "http://a/", "secret": "whsec_abc"}, "a secret is given where a reference"),
    ({"url": "http://a/", "secret": 7}, "`webhook.secret` cannot be a number"),
    ({"url": "http://a/", "unsigned": "yes"}, "`webhook.unsigned` cannot be text"),
    ({"url": "http://a/", "unsigned": True, "flat": 1}, "`webhook.flat` cannot be a number"),
    ({"url": "a", "unsigned": True}, "`webhook.url` is not an address"),
    ({"url": "http://a/", "unsignd": True}, "did you mean `unsigned`?"),
    ({"secret": "env:A"}, "`webhook` needs `url`"),
    ({"url": "http://a/", "unsigned": True, "allow_hosts": ["10.0.0.0/8"]}, "`webhook.allow_hosts` cannot be"),
])
def test_a_config_that_cannot_be_used_is_refused_with_its_key(given: object, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(given)
    assert said in str(caught.value)
    assert "whsec_abc" not in str(caught.value)


def test_a_config_is_completed_and_completing_it_again_changes_nothing() -> None:
    full = check({"url": "http://a/", "secret": "env:A"})
    assert full == {"url": "http://a/", "secret": ["env:A"], "unsigned": False, "flat": False, "allow_hosts": []}
    assert check(full) == full
