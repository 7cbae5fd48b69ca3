"""The command line: each verb parses, calls operations or the ledger, and renders.

What is imported here is imported for `nightporter --help` too, so it is next to nothing; see `verbs` for the table of
verbs, each of which loads its own module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. They are listed in docs/cli.md and do not change."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words in (["--help"], ["-h"], ["help"]):
        from nightporter.surfaces.cli.verbs import overview

        print(overview())
        return 0
    if words in (["--version"], ["-V"]):
        from nightporter import __version__

        print(f"nightporter {__version__}")
        return 0
    from nightporter.surfaces.cli.app import call

    return call(words)
