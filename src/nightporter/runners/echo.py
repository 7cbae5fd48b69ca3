"""echo: answers with what it was given. For trying triggers, limits and deliveries without anything behind them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nightporter.outside.options import mapping, typed
from nightporter.runners.filling import filled
from nightporter.words import Ended, Work


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`text` (or `prompt`, the body of a definition file): what to say before the firing's own text and payload, with
    what the run's look found in place of `{{look}}`."""
    given = mapping(config, "echo", known=("text", "prompt"), short="text")
    for key in given:
        typed(given, "echo", key, str, "")
    return given


class Echo:
    """Says its configured text, the firing's text and the firing's payload, each where there is one."""

    kind = "echo"
    opaque = False

    def run_now(self, work: Work) -> Ended:
        config = work.config
        parts = [filled(config.get("text") or config.get("prompt") or "", work.look), work.text]
        if work.payload is not None:
            parts.append(json.dumps(work.payload, ensure_ascii=False))
        return Ended.ok("\n\n".join(part for part in parts if part))
