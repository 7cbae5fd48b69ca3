"""Where a Config says that the folder of definition files is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nightporter.config import Config
from nightporter.definitions import definition_folder


def definitions_of(config: Config, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Path:
    """The folder of definition files. Raises BadInput when what was asked for is a file."""
    environ = dict(os.environ if environ is None else environ)
    if config.home is not None:
        environ["NIGHTPORTER_HOME"] = str(config.home)
    return definition_folder(config.definitions, environ, cwd or Path.cwd())
