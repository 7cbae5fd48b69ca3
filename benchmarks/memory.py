"""What a process takes: memory and processor time, as the kernel counts them."""

from __future__ import annotations

import os
from pathlib import Path


def resident_mb(pid: int | None = None) -> float:
    """Megabytes of a process that are in memory now; by default of this one."""
    pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_seconds(pid: int) -> float:
    """Seconds of processor time that the living threads of a process have used, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
