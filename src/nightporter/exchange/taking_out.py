"""Taking jobs out where they were, once they are here: the least that stops them, with a copy of what was there.

A line of a crontab becomes a comment, a script of a folder is no longer executable, a timer is disabled, a job of at is
removed. What only somebody else can do, or another machine, is said and left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import Final

from nightporter.exchange.crontab import TAKEN_OUT
from nightporter.exchange.entry import Entry, Off
from nightporter.exchange.planning import Item
from nightporter.exchange.tree import Tree
from nightporter.outside.asking import Answer
from nightporter.outside.files import write_durably

Ask = Callable[..., Answer]
_OWN: Final = "crontab of "


class Places:
    """The places that jobs are taken out of. `backups`: the folder for copies; `me`: who does it."""

    def __init__(self, tree: Tree, ask: Ask, backups: Path, me: str, *, here: bool) -> None:
        self._tree = tree
        self._ask = ask
        self._backups = backups
        self._me = me
        self._here = here
        """Whether the tree is this machine, whose commands can be asked."""

    def ahead(self, item: Item) -> Off:
        """What `take_out` would do."""
        how, why = self._how(item.entry)
        return Off("by_hand" if why else "would", how, why)

    def take_out(self, item: Item) -> Off:
        """Stop a job where it was. Never raises OSError: what fails is said, and then nothing has changed there."""
        assert item.automation_id is not None, "a job is taken out only once it is here"
        entry = item.entry
        how, why = self._how(entry)
        if why:
            return Off("by_hand", how, why)
        done = Off("out", how)
        try:
            if entry.source.kind == "systemd":
                return self._disable(entry, done)
            if entry.source.kind == "at":
                return self._remove(entry, done)
            if entry.source.kind == "run-parts":
                return self._forbid(entry, done)
            if entry.source.path.startswith(_OWN):
                return self._comment_own(item, done)
            return self._comment(item, done)
        except OSError as error:
            return Off("failed", how, error.strerror or str(error))

    def _how(self, entry: Entry) -> tuple[str, str]:
        """What is done, and why it is left to somebody else; empty where it is not."""
        source = entry.source
        if entry.off:
            command = " ".join(entry.off)
            if not self._here:
                return command, "that is for the machine itself"
            if "--user" in entry.off and entry.user != self._me:
                return command, f"that is for {entry.user} to do"
            return command, ""
        if source.kind == "run-parts":
            if self._tree.link_of(source.path):
                return f"rm {source.path}", "it is a link, and what it leads to may serve others"
            return f"{source.path} is made not executable", ""
        how = f"line {source.line} of {source.path.replace(_OWN, 'the crontab of ')} becomes a comment"
        if not source.path.startswith(("/", _OWN)):
            return how, "it came without its file"
        return how, ""

    def _comment(self, item: Item, done: Off) -> Off:
        place = self._tree.locate(item.entry.source.path)
        if place is None:
            return replace(done, state="failed", why="it is not there any more")
        content = place.read_bytes()
        changed = commented(content, item)
        if changed is None:
            return replace(done, state="failed", why="the file has changed meanwhile; import again")
        backup = self._kept(item.entry.source.path, content)
        about = place.stat()
        if place.read_bytes() != content:
            return replace(done, state="failed", why="the file is being changed by somebody; import again")
        write_durably(place, changed, mode=about.st_mode & 0o7777, owner=(about.st_uid, about.st_gid))
        return replace(done, backup=backup)

    def _comment_own(self, item: Item, done: Off) -> Off:
        before = self._ask(["crontab", "-l"])
        changed = None if before.code else commented(before.out, item)
        if changed is None:
            return replace(done, state="failed", why="it is not there any more; import again")
        backup = self._kept(item.entry.source.path, before.out)
        answer = self._ask(["crontab", "-"], changed)
        if answer.code or self._ask(["crontab", "-l"]).out != changed:
            return replace(done, state="failed", why=answer.err.strip()[:300] or "crontab -l does not show it so",
                           backup=backup)
        return replace(done, backup=backup)

    def _forbid(self, entry: Entry, done: Off) -> Off:
        place = self._tree.locate(entry.source.path)
        if place is None:
            return replace(done, state="failed", why="it is not there any more")
        mode = place.stat().st_mode & 0o7777
        place.chmod(mode & ~0o111)
        return replace(done, how=f"{done.how}; it was {mode:o}")

    def _disable(self, entry: Entry, done: Off) -> Off:
        program, *words = entry.off
        if "stop" in words and (content := self._tree.read(entry.source.path)) is not None:
            done = replace(done, backup=self._kept(entry.source.path, content))  # stopping it removes its unit
        answer = self._ask([program, "--no-ask-password", *words])
        if answer.code:
            return replace(done, state="failed", why=answer.err.strip()[:300] or f"it ended with {answer.code}")
        whose = [word for word in words if word in ("--user", "--global")]
        unit = words[words.index("--"):] if "--" in words else words[-1:]
        still = self._ask([program, *whose, "is-enabled", *unit]).out.decode("utf-8", "replace").strip()
        if still.startswith("enabled"):
            mask = " ".join([program, *whose, "mask", *unit])
            return replace(done, state="failed", why=f"it is enabled still, by its package: {mask}")
        if "--global" not in whose and not self._ask([program, *whose, "is-active", "--quiet", *unit]).code:
            return replace(done, state="failed", why="it is still active")
        return done

    def _remove(self, entry: Entry, done: Off) -> Off:
        content = self._job(entry)
        # Numbers are given anew: what is there now has to be what came over.
        if content is None or entry.text.partition("\n")[2] != content.decode("utf-8", "replace"):
            return replace(done, state="failed", why="it is not there any more")
        backup = self._kept(entry.source.path, content)
        answer = self._ask([*entry.off])
        if answer.code or self._job(entry) == content:
            return replace(done, state="failed", why=answer.err.strip()[:300] or "it is there still", backup=backup)
        return replace(done, backup=backup)

    def _job(self, entry: Entry) -> bytes | None:
        """The file of a job of at; None where it is gone."""
        if not entry.source.path.startswith("/"):
            shown = self._ask(["at", "-c", entry.off[-1]])
            return None if shown.code else shown.out
        place = self._tree.locate(entry.source.path)
        return None if place is None else place.read_bytes()

    def _kept(self, path: str, content: bytes) -> str:
        """Keep the first of all contents of this import; where it is."""
        place = self._backups / normpath(f"/{path}").lstrip("/").replace(" ", "-")
        if not place.exists():
            write_durably(place, content)
        return str(place)


def commented(content: bytes, item: Item) -> bytes | None:
    """The file with the job's line as a comment; None where the line cannot be found for sure."""
    lines = content.split(b"\n")
    alike = [number for number, line in enumerate(lines, 1) if _text(line) == item.entry.text.strip()]
    number = item.entry.source.line
    if number not in alike:
        if len(alike) != 1:
            return None
        number = alike[0]
    lines[number - 1] = f"{TAKEN_OUT}{item.mark}: ".encode() + lines[number - 1]
    return b"\n".join(lines)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\r").strip()
