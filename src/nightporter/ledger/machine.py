"""What is to be said of the machine and the settings beside the home: old copies, old zones, and who would notice."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from nightporter.clock import SECOND, Instant
from nightporter.config import VARIABLES, Config
from nightporter.ledger.home import Finding
from nightporter.rules.zones import TZDATA

OLD_COPY = 30
"""Days after which nobody goes back to the store as it was before a migration."""
SYSTEM_ZONES = Path("/usr/share/zoneinfo/tzdata.zi")


def copy_findings(store: Path, now: Instant) -> Iterator[Finding]:
    """Copies of the store that migrations left, and that are old by now."""
    with contextlib.suppress(OSError):
        for copy in sorted(store.parent.glob(f"{store.name}*before-*")):
            seen = copy.stat()
            if (days := int(now // SECOND - seen.st_mtime) // 86_400) >= OLD_COPY:
                yield Finding("old_backup", "note", f"{copy.name} is a copy of the store of {days} days ago, "
                              f"{seen.st_size // 2**20} MB", "it was made before the store was migrated",
                              f"rm {copy}", str(copy))


def zone_findings(system: Path = SYSTEM_ZONES) -> Iterator[Finding]:
    """Whether this machine knows newer rules of time zones than the desk, which goes by its own."""
    try:
        with system.open(encoding="utf-8") as file:
            known = file.readline().removeprefix("# version ").strip()
    except OSError:  # not every machine says
        return
    if re.fullmatch(r"20\d\d[a-z]", known) and known > TZDATA:
        yield Finding("old_zones", "warning",
                      f"the desk has the time zones of {TZDATA}, and this machine those of {known}",
                      "where a zone's rules changed since, slots are computed by the old ones",
                      "pip install --upgrade tzdata, and start the desk again")


def settings_findings(config: Config) -> Iterator[Finding]:
    """Whether anybody would notice that the desk is gone, or hear how it is."""
    if config.deadman is None:
        yield Finding("no_deadman", "note", "nobody outside notices when this desk is gone",
                      "a desk that is gone cannot say so; an address that is called as long as it works can",
                      f"export {VARIABLES['deadman']}=https://..., of a service that raises an alarm on silence")
    if config.heartbeat == "none":
        yield Finding("no_heartbeat", "note", "the daily word of the desk is switched off", "",
                      f"unset {VARIABLES['heartbeat']}")
