"""What a process takes: memory and processor time, as the kernel counts them."""

from __future__ import annotations

import os
from pathlib import Path


def resident_mb(pid: int | None = None) -> float:
    """Megabytes of a process that are in memory now; by default of this one."""
    pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
