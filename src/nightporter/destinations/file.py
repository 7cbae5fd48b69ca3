"""file: the result as a file below the outputs folder, whole or not at all."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nightporter.clock import Instant, moment
from nightporter.errors import BadInput, BadSchedule, NotPermitted
from nightporter.outside.files import inside, write_durably
from nightporter.outside.options import mapping, typed
from nightporter.rules.zones import zone
from nightporter.words import Parcel, Reason, Receipt, Sent

DEFAULT_PATH = "{{name}}/{{date}}-{{time}}-{{run}}.md"
_FORMATS = ("text", "json")
_FIELDS = ("date", "time", "run", "name")
_FIELD = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ESTALE})


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`path`: below the outputs folder, with {{date}}, {{time}} (of the run's end, in the automation's zone),
    {{run}}, {{name}} in it. `format`: `text` (the report) or `json` (all that is known). Raises BadInput."""
    given = mapping(config, "file", known=("path", "format"), short="path")
    path = typed(given, "file", "path", str, DEFAULT_PATH)
    for field in _FIELD.findall(path):
        if field not in _FIELDS:
            raise BadInput(f"`file.path` has an unknown field {{{{{field}}}}}",
                           why=f"it may have {', '.join('{{' + one + '}}' for one in _FIELDS)}",
                           next="correct or remove it")
    if path.startswith(("/", "~")):
        raise BadInput(f"`file.path` cannot be {path!r}",
                       why="it must stay below the outputs folder, so it is no whole path",
                       next=f"write it from that folder on: {path.lstrip('/~') or DEFAULT_PATH}")
    if not path.strip() or path.endswith("/") or "\0" in path or ".." in Path(path).parts:
        raise BadInput(f"`file.path` cannot be {path!r}", why="it must name a file below the outputs folder",
                       next=f"for example {DEFAULT_PATH}")
    form = typed(given, "file", "format", str, "text")
    if form not in _FORMATS:
        raise BadInput(f"`file.format` cannot be {form!r}", why="it takes text or json", next="write one of them")
    return {"path": path, "format": form}


class FileDestination:
    """Writes below `outputs`. A repeat writes the same bytes to the same place."""

    kind = "file"
    repeatable = True

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs

    async def send(self, parcel: Parcel) -> Sent:
        config = parcel.config
        content = _content(config.get("format", "text"), parcel.body)
        try:
            path = inside(self._outputs, filled(config.get("path", DEFAULT_PATH), parcel))
            await asyncio.to_thread(write_durably, path, content)
        except NotPermitted as error:
            return Sent(Receipt.PERMANENT, error=f"{error.what}; {error.why}; {error.next}",
                        reason=Reason.PERMISSION_DENIED)
        except OSError as error:
            said = f"{error.filename or self._outputs}: {error.strerror or error}"
            if error.errno in _FULL:
                return Sent(Receipt.TRANSIENT, error=said, reason=Reason.UNREACHABLE)
            return Sent(Receipt.PERMANENT, error=said, reason=Reason.CONFIGURATION)
        return Sent(Receipt.DELIVERED, evidence=f"{path} sha256:{hashlib.sha256(content).hexdigest()}")


def filled(template: str, parcel: Parcel) -> str:
    """The template with its fields filled in, each made safe as a part of a file name."""
    ended = _there(Instant(parcel.created_at), parcel.timezone)
    values = {
        "date": ended.strftime("%Y-%m-%d"),
        "time": ended.strftime("%H%M%S"),
        "run": _part(parcel.run_id),
        "name": _part(parcel.automation),
    }
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), template)


def _there(at: Instant, timezone: str) -> datetime:
    try:
        return moment(at).astimezone(zone(timezone))
    except BadSchedule:  # a zone that a newer release has dropped: a result is not lost for it
        return moment(at)


def _part(text: str) -> str:
    safe = re.sub(r"[^\w.-]+", "-", text).strip(".-")
    return safe[:120] or "unnamed"


def _content(form: str, body: Mapping[str, Any]) -> bytes:
    data: Mapping[str, Any] = body.get("data") or {}
    if form == "json":
        return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode(errors="replace")
    text = str(data.get("text") or "") or str(data.get("error") or "")
    return (text if text.endswith("\n") else text + "\n").encode(errors="replace")
