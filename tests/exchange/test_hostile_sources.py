"""Whatever stands in a foreign file, it is read to its end, and everything that was found is accounted for."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from machines import NOW, PEOPLE, ZONE, machine, planned, scanned, tab
from units import ETC, WANTS

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


UNIT_PIECES = [
    b"[Timer]\n", b"[Service]\n", b"[Unit]\n", b"OnCalendar=", b"daily", b"Mon..Fri 9:00", b"*-*-* 0/2:00", b"\n",
    b"OnUnitActiveSec=", b"5min", b"RandomizedDelaySec=", b"Persistent=yes\n", b"ExecStart=", b"/bin/x ", b"-", b"'",
    b'"', b"\\", b"\\\n", b";", b"$", b"${A}", b"$A ", b"%i", b"%", b"%h", b"Environment=A=1", b"\xff", b"\0",
    b"EnvironmentFile=-/e", b"User=", b"ana", b"WorkingDirectory=", b"~", b"Type=oneshot\n", b"Unit=", b"a.service",
    b"TimeoutStartSec=", b"=", b"[", b"]", b"#", b"ConditionX=", b"9" * 30, "é".encode(), b"\x1b[1m",
]
JOB_PIECES = [
    b"# atrun uid=1000 gid=1000\n", b"# mail ana 0\n", b"umask 22\n", b"A=1; export A\n", b"A=", b"; export A",
    b"cd /srv || {\n exit 1\n}\n", b"\n", b"\\", b'"\n"', b"${SHELL:-/bin/sh} << 'x'\n", b"x\n", b"\xff", b"\0",
    b"}",
]


@pytest.mark.parametrize("seed", range(2))
def test_nothing_in_units_and_jobs_throws_and_the_counts_balance(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)

    def text(pieces: list[bytes]) -> bytes:
        return drawn.randbytes(200) if drawn.random() < 0.1 else b"".join(
            drawn.choice(pieces) for _ in range(drawn.randint(0, 40)))

    files: dict[str, str | bytes] = {}
    for number in range(100):
        files[f"{ETC}/t{number}@.timer"] = b"[Timer]\nOnCalendar=daily\n" + text(UNIT_PIECES)
        files[f"{ETC}/t{number}@.service"] = b"[Service]\nExecStart=/bin/x\n" + text(UNIT_PIECES)
        files[f"/var/spool/cron/atjobs/a{number:05x}{31_000_000 + number:08x}+x"] = (
                b"# atrun uid=1000 gid=1000\n" + text(JOB_PIECES))
    links = {f"{WANTS}/t{number}@{drawn.choice(['a', 'b-c', '%n', chr(92) + 'x41'])}.timer": f"{ETC}/t{number}@.timer"
             for number in range(100)}
    plan = scanned(machine(tmp_path, files, links=links))
    counts = plan.counts
    assert counts["found"] == len(plan.items) == 300 == sum(counts[key] for key in counts if key != "found")
    for item in plan.items:
        json.dumps(item.as_json(NOW), ensure_ascii=False).encode()
        assert (item.definition is not None) == (item.state == "imported")
        assert bool(item.reason) == (item.state != "imported")
    assert {(item.state, item.entry.source.kind) for item in plan.items} >= {
        ("imported", "systemd"), ("refused", "systemd"), ("imported", "at"), ("refused", "at")}
