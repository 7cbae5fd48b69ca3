"""Definition files: what a person wrote -> a Definition, or an error with its line and column.

Promise        a broken file is a visible error and stops no other; what is not understood is refused, never ignored
Takes          the files of one folder
Leaves         `Found` and `Change` values
Picked up by   operations, which keep the store in step with them
"""

from nightporter.definitions.carrying import Check, Checks
from nightporter.definitions.reading import read
from nightporter.definitions.rendering import render

__all__ = ["Check", "Checks", "read", "render"]
