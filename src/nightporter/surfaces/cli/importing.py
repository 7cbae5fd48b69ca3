"""`import`: what other schedulers have to do, listed with what it would become, and brought over paused."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from nightporter.clock import SystemClock, moment
from nightporter.errors import BadInput
from nightporter.exchange import KINDS, Found, Item, Places, Plan, Tree, bring, plan, present, scan, tab_of_file
from nightporter.ledger.moments import spoken
from nightporter.outside.asking import answer_of
from nightporter.rules.schedule import sentence
from nightporter.surfaces.cli.given import given
from nightporter.surfaces.cli.out import Out
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person

if TYPE_CHECKING:
    from nightporter.clock import Instant
    from nightporter.config import Config

_OFF = {"would": "would be out", "out": "taken out", "by_hand": "by hand", "failed": "not taken out"}
_WORDS = {"imported": "imported", "already": "already there", "refused": "refused", "skipped": "skipped"}


def import_(
    what: Annotated[Literal["os", "crontab", "systemd", "at"], Parameter(
        help="Whose jobs: crontab is cron's and anacron's, systemd its timers, at what waits for once; os is all."
    )], *,
    file: Annotated[Path | None, Parameter(
        help="With crontab: this one alone, as a user writes it; - is standard input."
    )] = None,
    root: Annotated[Path, Parameter(help="Where the machine's files are: a copy, or a container's.")] = Path("/"),
    system: Annotated[bool, Parameter(help="With a file: each line names its user, as in /etc/crontab.")] = False,
    only: Annotated[tuple[str, ...], Parameter(
        help="Once for each: a name as it is listed, a file, or a file and a line."
    )] = (),
    files: Annotated[bool, Parameter(help="Write definition files, in place of keeping them in the store.")] = False,
    disable_source: Annotated[bool, Parameter(
        help="Take each job that is here out where it was; asks first. It then runs nowhere until it is enabled."
    )] = False,
    yes: Annotated[bool, Parameter(help="Do not ask.")] = False,
    dry_run: DryRun = False, common: Common = USUAL,
) -> int:
    """Bring over what other schedulers of this machine have to do. With --dry-run it is listed only, with what each job
    would become and everything that would not come over.

    They are paused until they are enabled, and nothing changes where they come from unless --disable-source is said:
    whoever enables a job takes it out there first, or it runs twice.
    """
    config = common.settings()
    found = _found(what, file, root, system, config.timezone, SystemClock().now())
    with _somewhere(common, dry_run) as place:
        now = SystemClock().now() if place is None else place.clock.now()
        marks, names = ({}, set()) if place is None else place.read(present)
        folder = None
        if files:
            from nightporter.engine.places import definitions_of

            folder = definitions_of(config)
            names |= {path.stem for path in folder.glob("*.*")} if folder.is_dir() else set()
        made = plan(found.readings, unread=found.unread, present=marks, taken=names, only=only, me=person(),
                    now=now)
        places = _places(config, file, root, now)
        if disable_source:
            made = made.changed(replace(item, off=places.ahead(item)) if item.definition else item
                                for item in made.items)
            if not (dry_run or yes or _agreed(common.out(), made)):
                return 0
        if place is not None and not dry_run:
            store, clock = place.store, place.clock
            made = made.changed(
                bring(store, item, by=person(), now=clock.now, folder=folder) if item.state == "imported" else item
                for item in made.items
            )
            if disable_source:  # only once all of them are on disk here
                made = made.changed(replace(item, off=places.take_out(item) if item.is_here else None)
                                    for item in made.items)
        made.check()
    _tell(common.out(), made, found, root, now, dry_run)
    return 1 if any(item.off and item.off.state == "failed" for item in made.items) else 0


def _places(config: Config, file: Path | None, root: Path, now: Instant) -> Places:
    """Where jobs are taken out. A file that is named is one of this machine."""
    copies = config.state / "imported" / f"{moment(now):%Y%m%dT%H%M%S.%fZ}"
    tree = Tree(Path("/") if file else root.resolve())
    return Places(tree, answer_of, copies, person(), here=tree.is_machine)


def _agreed(out: Out, made: Plan) -> bool:
    """Whether a person at the terminal wants what would be done. Raises BadInput where there is none to ask."""
    ahead = [item for item in made.items if item.off and item.off.state == "would"]
    if not ahead:
        return True
    if out.as_json or not sys.stdin.isatty():
        raise BadInput("--disable-source asks first, and there is nobody to ask", why="it changes what others wrote",
                       next="look at it with --dry-run, then say --yes")
    for item in ahead:
        out.line(f"{item.entry.source.where}: {item.off.how if item.off else ''}")
    print(f"Bring these {len(ahead)} over and take them out where they are? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    out.line("Nothing was changed.")
    return False


def _found(what: str, file: Path | None, root: Path, system: bool, timezone: str, now: Instant) -> Found:
    if file is None:
        if system:
            raise BadInput("--system belongs to a file", next="add --file, or leave --system out")
        return scan(root, KINDS if what == "os" else (what,), me=person(), otherwise=timezone, now=now)
    if what != "crontab":
        raise BadInput(f"{what} takes no file", next=f"nightporter import crontab --file {file}")
    content = given(str(file), "the crontab")
    path = "standard input" if str(file) == "-" else str(file.absolute())
    return tab_of_file(content, path, user="" if system else person(), root=root, otherwise=timezone)


@contextlib.contextmanager
def _somewhere(common: Common, dry_run: bool) -> Iterator[Place | None]:
    """The store; none where only a look is asked for and there is none yet."""
    store = common.settings().store
    if dry_run and "://" not in store and not Path(store).exists():
        yield None
        return
    with opened(common, make=True) as place:
        yield place


def _tell(out: Out, made: Plan, found: Found, root: Path, now: Instant, dry_run: bool) -> None:
    counts = made.counts
    if out.as_json:
        out.json({
            "root": str(root), "timezone": found.timezone, "dry_run": dry_run, "counts": counts,
            "items": [item.as_json(now) for item in made.items],
            "sources": [reading.as_json() for reading in made.readings],
            "unread": [each.as_json() for each in made.unread],
        })
        return
    for item in made.items:
        _show(out, item, now, dry_run)
    for each in made.unread:
        out.line(f"not read: {each.path}: {each.why}")
    found_all, *rest = counts.values()
    said = ", ".join(f"{count} {_WORDS[state]}" for state, count in zip(_WORDS, rest, strict=True))
    out.line(f"{found_all} found = {said}.")
    if dry_run:
        out.line("Nothing was changed.")
    elif any(item.off and item.off.state == "out" for item in made.items):
        out.line("What was taken out runs nowhere until: nightporter enable NAME")
    elif counts["imported"]:
        out.line("They are paused. Take a job out where it was, then: nightporter enable NAME")


def _show(out: Out, item: Item, now: Instant, dry_run: bool) -> None:
    entry = item.entry
    state = "would be imported" if dry_run and item.state == "imported" else _WORDS[item.state]
    reason = f": {item.reason}" if item.reason else ""
    named = f" as {item.name}" if item.state == "imported" else ""
    out.line(f"{entry.source.where}  {state}{named}{reason}")
    facts = [("user", entry.user), ("command", entry.shown or entry.text)]
    if item.state in ("imported", "already"):
        for schedule, fires, warning in item.schedules(now):
            facts.append(("when", f"{sentence(schedule)}  [{schedule.kind} {schedule.expression}]"))
            facts.append(("next", ", ".join(spoken(fire, schedule.timezone) for fire in fires) or "never"))
            facts.append(("mind", warning))
    if item.state == "imported":
        facts.append(("comes over", ", ".join(entry.carried)))
        facts += [("does not", f"{each.what}: {each.why}") for each in entry.leftovers]
        facts.append(("to take out", "" if item.off else " ".join(entry.off)))
    if item.off:
        why = f": {item.off.why}" if item.off.why else ""
        facts.append((_OFF[item.off.state], f"{item.off.how}{why}"))
        facts.append(("as it was", item.off.backup))
    out.facts(facts)
