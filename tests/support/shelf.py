"""A folder of definition files, and a desk that keeps its store in step with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builders import Night

from nightporter.definitions import scan
from nightporter.operations import Synced, load

HOURLY = 'name: {name}\nwhen: "0 * * * *"\ntimezone: UTC\ntarget: {{noop: }}\n{more}'


@dataclass
class Shelf:
    """Files are put on it, and `read` brings the store in step."""

    night: Night
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def put(self, name: str, more: str = "", *, file: str = "") -> Path:
        """An hourly automation is written, with more lines."""
        return self.write(file or f"{name}.yaml", HOURLY.format(name=name, more=more))

    def write(self, file: str, text: str) -> Path:
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        return path

    def spoil(self, name: str) -> None:
        """Somebody saves half of it."""
        self.write(f"{name}.yaml", f"name: {name}\ntarget: {{noop: }}\nwhen: ever\n")

    def read(self, *, whole: bool = True) -> list[tuple[str, str]]:
        """What a look at all of it changed: `(name, change)`."""
        return [(line.name, line.change) for line in self.told(whole=whole)]

    def told(self, *, whole: bool = True) -> list[Synced]:
        owners = self.night.store.read(lambda tx: tx.owners_of_names())
        found = scan(self.folder, default_timezone="UTC", now=self.night.now, owners=owners)
        return load(self.night.store, self.folder, found, default_timezone="UTC", now=self.night.clock.now, whole=whole)

    def automation(self, name: str) -> str:
        """The id of the one of that name."""
        (automation,) = self.night.store.read(lambda tx: tx.automation_named(name))
        return automation

    def made(self, name: str, more: str = "") -> str:
        """The same once it is written and read; its id."""
        self.put(name, more)
        self.read()
        return self.automation(name)
