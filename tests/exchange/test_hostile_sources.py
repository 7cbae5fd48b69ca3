"""Whatever stands in a foreign file, it is read to its end, and everything that was found is accounted for."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from machines import NOW, PEOPLE, ZONE, planned, tab

from nightporter.exchange.anacrontab import anacron_jobs
from nightporter.exchange.entry import Reading

PIECES = [b"*", b"*/5", b"0", b"59", b"1-5", b"7", b" ", b"\t", b"\n", b"\r\n", b"@daily", b"@reboot", b"root", b"ana",
          b"MAILTO=", b'"', b"'", b"PATH=/bin", b"CRON_TZ=", b"Asia/Tokyo", b"%", b"\\%", b"\\", b"#", b"=", b"/bin/x",
          b"\0", b"\xff\xfe", "é".encode(), b"-", b"~", b",", b"/", b"A=1", b"run-parts /etc/cron.daily", b"{", b": ",
          b"0 3 * * * ", b"SHELL=/bin/sh\n", b"\x1b[31m", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"9" * 30]
READERS: dict[str, Callable[[bytes], Reading]] = {
    "a user's crontab": tab,
    "the system's crontab": lambda raw: tab(raw, user=""),
    "anacrontab": lambda raw: anacron_jobs(raw, ZONE, PEOPLE, debian=True),
}


def hostile(drawn: random.Random) -> bytes:
    kind = drawn.random()
    if kind < 0.3:
        return drawn.randbytes(drawn.randint(0, 300))
    return b"".join(drawn.choice(PIECES) + drawn.choice([b"", b" ", b" ", b"\n"])
                    for _ in range(drawn.randint(0, 60)))


@pytest.mark.parametrize("reader", READERS)
def test_nothing_in_a_file_throws_and_the_counts_balance(reader: str) -> None:
    drawn = random.Random(f"4 {reader}")
    met: set[str] = set()
    for _ in range(400):
        plan = planned(READERS[reader](hostile(drawn)))
        counts = plan.counts
        assert counts["found"] == len(plan.items) == sum(counts[key] for key in counts if key != "found")
        (reading,) = plan.readings
        assert reading.lines == counts["found"] + reading.variables + reading.comments
        for item in plan.items:
            json.dumps(item.as_json(NOW), ensure_ascii=False).encode()
            assert (item.definition is not None) == (item.state == "imported")
            assert bool(item.reason) == (item.state != "imported")
        met |= {item.state for item in plan.items}
    assert met >= {"imported", "refused"}
