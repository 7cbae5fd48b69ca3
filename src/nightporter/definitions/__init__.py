"""Definition files: what a person wrote -> a Definition, or an error with its line and column.

Promise        a broken file is a visible error and hides no other; what is not understood is refused, never ignored
Takes          the files of one folder
Leaves         `Found` and `Change` values
Picked up by   operations, which keep the store in step with them
"""

from pathlib import Path

from nightporter.definitions.carrying import Check, Checks
from nightporter.definitions.folder import Found, definition_folder, scan
from nightporter.definitions.reading import read
from nightporter.definitions.rendering import render
from nightporter.definitions.watcher import Change, Watcher

__all__ = ["SCHEMA", "Change", "Check", "Checks", "Found", "Watcher", "definition_folder", "read", "render", "scan"]

SCHEMA = Path(__file__).with_name("automation.schema.json")
"""The JSON Schema of definitions, for editors."""
