"""What definitions need of the world around them: secrets, modules, addresses; found without calling any of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nightporter.ledger.home import Finding, program_findings
from nightporter.outside.addresses import host_key, objection
from nightporter.words import Definition

Environment = Mapping[str, str]


def needs(definition: Definition, environment: Environment) -> Iterator[Finding]:
    """What is missing for one definition. `environment`: that of the desk, where it could be read."""
    name, target = definition.name, definition.target
    look = _OF_TARGETS.get(target.kind)
    if look is not None:
        yield from look(name, target.config)
    for what, config in (("its target", target.config), *((d.name, d.config) for d in definition.deliver)):
        yield from _secrets(name, what, config, environment)
    yield from _address(name, "its target", target.config)
    for each in definition.deliver:
        yield from _address(name, each.name, each.config)


def references(config: Mapping[str, Any]) -> Iterator[str]:
    """The secret references in a config."""
    one = config.get("secret")
    yield from [one] if isinstance(one, str) else [each for each in one or () if isinstance(each, str)]
    for key in ("secrets", "secret_headers"):
        named = config.get(key)
        if isinstance(named, Mapping):
            yield from (str(value).rpartition(" ")[2] for value in named.values())


def _secrets(name: str, what: str, config: Mapping[str, Any], environment: Environment) -> Iterator[Finding]:
    for reference in dict.fromkeys(references(config)):
        scheme, _, at = reference.partition(":")
        if scheme == "env" and not environment.get(at):
            yield Finding("secret_unset", "error", f"{name} needs the secret {reference} for {what}, and it is not set",
                          f"{at} is not in the environment that the desk was started with, or is empty there",
                          f"export {at}=... and start the desk again: nightporter up", name)
        elif scheme == "file" and not os.access(Path(at).expanduser(), os.R_OK):
            yield Finding("secret_unset", "error", f"{name} needs the secret {reference} for {what}, and it cannot be "
                          "read", "the file is not there, or this user may not read it", f"ls -l {at}", name)


def _address(name: str, what: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    url = config.get("url")
    if not isinstance(url, str):
        return
    try:
        host = urlsplit(url).hostname or ""
        private = "this machine" if host == "localhost" or host.endswith(".localhost") else objection(host)
    except ValueError:  # a name: where it leads is seen when it is called
        return
    allowed = {host_key(str(each)) for each in config.get("allow_hosts") or ()}
    if private and host_key(host) not in allowed:
        yield Finding("private_address", "error", f"{name} calls {host} for {what}, which is refused",
                      f"it is {private}, and `allow_hosts` does not name it", f"nightporter show {name}: add "
                      f"allow_hosts: [{host}] there", name)


def _module(name: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    module = str(config.get("call", "")).partition(":")[0].partition(".")[0]
    paths = [str(each) for each in config.get("path") or ()]
    for path in paths:
        if not Path(path).is_dir():
            yield Finding("module_folder", "error", f"{name} imports from {path}, which is no folder", "",
                          f"mkdir -p {path}, or change `path`", name)
    if module and PathFinder.find_spec(module, paths) is None and PathFinder.find_spec(module) is None:
        yield Finding("module_missing", "error", f"{name} calls {config.get('call')}, and there is no module {module}",
                      f"looked for in {', '.join(paths) or 'no folder'} and among what is installed beside the desk",
                      f"install it, or correct `call`: nightporter show {name}", name)


_OF_TARGETS: dict[str, Callable[[str, Mapping[str, Any]], Iterator[Finding]]] = {
    "script": program_findings, "python": _module,
}
"""What a kind of target needs beside secrets and addresses."""


def environment_of(pid: int) -> Environment | None:
    """What a process was started with; None where that is not to be seen."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in text.split(b"\0") if entry)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
