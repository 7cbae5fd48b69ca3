"""http: what is asked, and what each answer comes to."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from desks import RecordingDesk, work_for
from receiver import HANG, Receiver, answer

from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.outside.http import Web
from nightporter.runners.http import Http, check
from nightporter.words import Ended, Ending, ErrorClass, Reason


async def run(config: dict[str, Any], *, allowed: bool = True, **given: Any) -> Ended:
    config = {**config, "allow_hosts": ["127.0.0.1"]} if allowed else config
    web = Web()
    try:
        return await Http(web, lambda: Instant(0)).run(work_for("http", check(config), **given), RecordingDesk())
    finally:
        await web.close()


async def test_the_body_of_a_success_is_the_report_and_json_is_data_too() -> None:
    async with Receiver(answer(200, "all well"), answer(201, '{"n": 1}', content_type="application/json")) as receiver:
        assert await run({"url": receiver.url}) == Ended.ok("all well")
        assert await run({"url": receiver.url}) == Ended.ok('{"n": 1}', data={"n": 1})
        assert receiver.asked[0].method == "GET"
        assert receiver.asked[0].headers["idempotency-key"] == "run_0123"


async def test_what_is_to_be_sent_is_sent() -> None:
    async with Receiver() as receiver:
        await run({"url": receiver.url, "json": {"né": 1}})
        await run({"url": receiver.url, "body": "plain", "method": "put", "headers": {"Content-Type": "text/plain"}})
        await run({"url": receiver.url, "method": "POST"}, payload={"from": "the firing"})
        await run({"url": receiver.url, "method": "POST"})
        await run({"url": receiver.url}, payload={"from": "the firing"})
    asked = receiver.asked
    assert (asked[0].method, json.loads(asked[0].body), asked[0].headers["content-type"]) == (
        "POST", {"né": 1}, "application/json")
    assert (asked[1].method, asked[1].body, asked[1].headers["content-type"]) == ("PUT", b"plain", "text/plain")
    assert json.loads(asked[2].body) == {"from": "the firing"}
    assert (asked[3].body, asked[4].body) == (b"", b"")


async def test_secret_headers_are_looked_up_at_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"secret_headers": {"Authorization": "Bearer env:API_TOKEN", "X-Key": "env:API_TOKEN"}}
    async with Receiver() as receiver:
        monkeypatch.setenv("API_TOKEN", "s3cret")
        await run({"url": receiver.url, **config})
        assert receiver.asked[0].headers["authorization"] == "Bearer s3cret"
        assert receiver.asked[0].headers["x-key"] == "s3cret"
        monkeypatch.delenv("API_TOKEN")
        ended = await run({"url": receiver.url, **config})
        assert ended.error_class == ErrorClass.CONFIGURATION
        assert "env:API_TOKEN is not there" in ended.error
        assert len(receiver.asked) == 1


@pytest.mark.parametrize(("status", "headers", "ending", "error_class", "wait"), [
    (500, {}, Ending.ERROR, ErrorClass.TRANSIENT, None),
    (502, {}, Ending.ERROR, ErrorClass.TRANSIENT, None),
    (503, {}, Ending.ERROR, ErrorClass.TRANSIENT, None),
    (408, {}, Ending.ERROR, ErrorClass.TRANSIENT, None),
    (429, {}, Ending.ERROR, ErrorClass.TRANSIENT, None),
    (429, {"retry_after": "90"}, Ending.HOLD, None, 90),
    (503, {"retry_after": "Thu, 01 Jan 1970 01:00:00 GMT"}, Ending.HOLD, None, 3600),
    (503, {"retry_after": "soon"}, Ending.ERROR, ErrorClass.TRANSIENT, None),
    (500, {"retry_after": "90"}, Ending.ERROR, ErrorClass.TRANSIENT, 90),
    (400, {}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
    (401, {}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
    (403, {}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
    (404, {}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
    (410, {}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
    (302, {"location": "http://127.0.0.1:1/"}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
    (300, {}, Ending.ERROR, ErrorClass.CONFIGURATION, None),
])
async def test_each_status_comes_to_what_it_means(
    status: int, headers: dict[str, str], ending: Ending, error_class: ErrorClass | None, wait: int | None,
) -> None:
    async with Receiver(answer(status, "why\nso", **headers)) as receiver:
        ended = await run({"url": receiver.url})
    assert (ended.ending, ended.error_class) == (ending, error_class)
    assert ended.retry_after == (None if wait is None else timedelta(seconds=wait))
    assert ended.error.startswith(f"HTTP {status}")
    assert ended.text == "why\nso"
    assert ended.reason == (Reason.PROVIDER_UNAVAILABLE if ending == Ending.HOLD else None)


async def test_expected_statuses_replace_the_successes() -> None:
    async with Receiver(answer(404, "gone")) as receiver:
        assert (await run({"url": receiver.url, "expect": [404, 410]})).ending == Ending.OK
    async with Receiver(answer(200, "back")) as receiver:
        ended = await run({"url": receiver.url, "expect": 404})
    assert (ended.error_class, ended.error) == (ErrorClass.CONFIGURATION, "HTTP 200 OK, and `expect` takes 404")


async def test_an_inside_address_that_is_not_allowed_is_a_permission_error() -> None:
    async with Receiver() as receiver:
        ended = await run({"url": receiver.url}, allowed=False)
        assert ended.error_class == ErrorClass.PERMISSION
        assert "add 127.0.0.1 to allow_hosts" in ended.error
        assert receiver.connections == 0


async def test_nobody_there_and_garbage_are_transient_and_a_hang_is_a_timeout() -> None:
    async with Receiver(b"garbage\r\n\r\n") as receiver:
        assert (await run({"url": receiver.url})).error_class == ErrorClass.TRANSIENT
        url = receiver.url
    assert (await run({"url": url})).error_class == ErrorClass.TRANSIENT
    async with Receiver(HANG) as receiver:
        ended = await run({"url": receiver.url}, timeout=timedelta(seconds=0.1))
    assert (ended.ending, ended.error) == (Ending.TIMEOUT, "no complete answer within its timeout of 0.1 s")


async def test_an_answer_beyond_the_limit_is_cut_and_says_so() -> None:
    async with Receiver(answer(200, '{"a": "b"}', content_type="application/json")) as receiver:
        ended = await run({"url": receiver.url}, output_limit=4)
    assert (ended.text, ended.data) == ('{"a"\n[cut here: there was more]', None)


async def test_an_answer_that_only_calls_itself_json_is_text() -> None:
    async with Receiver(answer(200, "{nope", content_type="application/json")) as receiver:
        assert await run({"url": receiver.url}) == Ended.ok("{nope")


@pytest.mark.parametrize(("config", "said"), [
    ({}, "`http` needs `url`"), ({"url": "example.com"}, "`http.url` is not an address"),
    ({"url": "http://a/", "methd": "GET"}, "did you mean `method`?"),
    ({"url": "http://a/", "method": "GET /"}, "`http.method` cannot be text"),
    ({"url": "http://a/", "json": 1, "body": "x"}, "both `json` and `body`"),
    ({"url": "http://a/", "body": {}}, "`http.body` cannot be a map"),
    ({"url": "http://a/", "headers": {"a b": "c"}}, "cannot have 'a b'"),
    ({"url": "http://a/", "headers": {"Host": "c"}}, "cannot have 'Host'"),
    ({"url": "http://a/", "headers": []}, "`http.headers` cannot be a list"),
    ({"url": "http://a/", "secret_headers": {"A": "Bearer hunter2"}}, "a secret is given where a reference"),
    ({"url": "http://a/", "expect": "200"}, "`http.expect` cannot be text"),
    ({"url": "http://a/", "expect": 2}, "`http.expect` cannot be a number"),
    ({"url": "http://a/", "allow_hosts": ["*"]}, "`http.allow_hosts` cannot be '*'"),
])
def test_a_config_that_cannot_be_used_is_refused_with_its_key(config: object, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(config)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_config_is_completed_and_completing_it_again_changes_nothing() -> None:
    full = check({"url": "http://a/", "json": None, "body": "x"})
    assert (full["method"], full["expect"], full["allow_hosts"]) == ("POST", [], [])
    assert check(full) == full
    assert check("http://a/")["method"] == "GET"
