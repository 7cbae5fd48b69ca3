"""Pages that have changed, asked of a real server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asking import ask
from receiver import HANG, Receiver, answer

from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.looks.http import Http, check
from nightporter.outside.http import Web
from nightporter.words import ErrorClass, Seen, Sight

NOW = Instant(1_774_598_400_000_000)


async def look(receiver: Receiver, before: Any = None, *, limit: float = 20, **keys: Any) -> Seen:
    web = Web()
    try:
        config = check({"url": receiver.url, "allow_hosts": ["127.0.0.1"], **keys})
        return await ask(Http(web, lambda: NOW, timedelta(seconds=limit)), config, before)
    finally:
        await web.close()


async def test_the_first_look_is_what_later_ones_are_compared_with() -> None:
    async with Receiver(answer(200, "one"), answer(200, "one"), answer(200, "two")) as receiver:
        first = await look(receiver)
        assert first.sight is Sight.NOTHING
        same = await look(receiver, first.state)
        assert (same.sight, same.state) == (Sight.NOTHING, None)
        changed = await look(receiver, first.state)
        assert (changed.sight, changed.text) == (Sight.SOMETHING, "two")
        assert (await look(receiver, changed.state)).sight is Sight.NOTHING


async def test_the_first_look_wakes_where_that_is_asked() -> None:
    async with Receiver(answer(200, "one")) as receiver:
        seen = await look(receiver, first="wake")
        assert (seen.sight, seen.text) == (Sight.SOMETHING, "one")
        assert (await look(receiver, seen.state, first="wake")).sight is Sight.NOTHING


@pytest.mark.parametrize(
    ("header", "sent"), [({"ETag": '"a1"'}, "if-none-match"),
                         ({"Last_Modified": "Fri, 27 Mar 2026 08:00:00 GMT"}, "if-modified-since")],
)
async def test_the_server_is_asked_with_the_marks_that_it_gave(header: dict[str, str], sent: str) -> None:
    async with Receiver(answer(200, "one", **header), answer(304)) as receiver:
        first = await look(receiver)
        assert sent not in receiver.asked[0].headers
        assert (await look(receiver, first.state)).sight is Sight.NOTHING
        assert receiver.asked[1].headers[sent] == next(iter(header.values()))
        assert receiver.asked[1].method == "GET"


async def test_a_new_mark_on_the_same_page_is_nothing_and_is_kept() -> None:
    async with Receiver(answer(200, "one", ETag='"a"'), answer(200, "one", ETag='"b"')) as receiver:
        first = await look(receiver)
        again = await look(receiver, first.state)
        assert (again.sight, again.state["etag"]) == (Sight.NOTHING, '"b"')


async def test_of_a_json_page_the_part_that_is_named_counts() -> None:
    pages = [f'{{"at": {at}, "items": [{{"id": "{id}"}}]}}' for at, id in ((1, "x"), (2, "x"), (3, "y"))]
    async with Receiver(*(answer(200, page) for page in pages)) as receiver:
        first = await look(receiver, part="/items/0/id")
        assert (await look(receiver, first.state, part="/items/0/id")).sight is Sight.NOTHING
        assert (await look(receiver, first.state, part="/items/0/id")).text == "y"


@pytest.mark.parametrize(
    ("said", "keys", "error_class"),
    [
        (answer(404), {}, ErrorClass.CONFIGURATION), (answer(302, location="/other"), {}, ErrorClass.CONFIGURATION),
        (answer(304), {}, ErrorClass.CONFIGURATION),
        (answer(500), {}, ErrorClass.TRANSIENT), (answer(429), {}, ErrorClass.TRANSIENT),
        (b"nonsense\r\n\r\n", {}, ErrorClass.TRANSIENT), (HANG, {"limit": 0.2}, ErrorClass.TIMEOUT),
        (answer(200, "no json"), {"part": "/id"}, ErrorClass.CONFIGURATION),
        (answer(200, "[" * 100_000), {"part": "/id"}, ErrorClass.CONFIGURATION),
        (answer(200, '{"other": 1}'), {"part": "/id"}, ErrorClass.CONFIGURATION),
        (answer(200, "x" * 4_000_001), {}, ErrorClass.CONFIGURATION),
    ],
)
async def test_whatever_is_no_page_is_a_look_that_failed(
    said: bytes, keys: dict[str, Any], error_class: ErrorClass
) -> None:
    async with Receiver(said) as receiver:
        seen = await look(receiver, **keys)
        assert (seen.sight, seen.error_class) == (Sight.FAILED, error_class)


async def test_when_to_come_back_is_passed_on() -> None:
    async with Receiver(answer(503, retry_after="90")) as receiver:
        assert (await look(receiver)).retry_after == timedelta(seconds=90)


async def test_an_address_that_nobody_allowed_is_not_asked() -> None:
    async with Receiver(answer(200, "one")) as receiver:
        seen = await look(receiver, allow_hosts=[])
        assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.PERMISSION)
        assert receiver.asked == []


async def test_a_secret_header_is_looked_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receiver(answer(200, "one")) as receiver:
        gone = await look(receiver, secret_headers={"Authorization": "Bearer env:PAGE_TOKEN"})
        assert (gone.sight, gone.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)
        monkeypatch.setenv("PAGE_TOKEN", "hush")
        await look(receiver, secret_headers={"Authorization": "Bearer env:PAGE_TOKEN"})
        assert [asked.headers["authorization"] for asked in receiver.asked] == ["Bearer hush"]


@pytest.mark.parametrize("wrong", [{"part": "id"}, {"first": "sleep"}, {"method": "POST"}, {"url": "ftp://x"}])
def test_what_cannot_be_asked_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        check({"url": "https://example.com", **wrong})
