"""Read only: a child that may look and not touch, as far as the kernel can see to it.

Linux's Landlock takes from a process, and all that it starts, the right to write, make, rename and remove files, but
below one folder; it asks for no rights itself. Where the kernel has none the child has the rights of the desk. What it
does not cover anywhere: modes, owners and times of files, and whatever is done over the network.

This file is also a program (`python -I -S readonly.py FOLDER -- PROGRAM ARGUMENTS`), which becomes the other one:
standard library only, and few modules of it.
"""

from __future__ import annotations

import ctypes
import os
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on every machine."""
_NO_NEW_PRIVILEGES = 38
_WRITE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = _WRITE | 0x1FF0
"""Write a file; remove or make anything in a folder."""
_REFER = 1 << 13
_SIGNALS = 1 << 1
_HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(folder: str) -> bool:
    """From here on this process, and what it starts, changes files below `folder` only; False where the kernel cannot
    see to that."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return False
    handled = _CHANGES | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    ruleset = _Ruleset(handled, 0, _SIGNALS if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    made = libc.syscall(_CREATE, ctypes.byref(ruleset), ctypes.c_size_t(size), 0)
    if made < 0:
        return False
    try:
        _allow(libc, made, folder, handled)
        for device in _HARMLESS:
            _allow(libc, made, device, handled & (_WRITE | _TRUNCATE))
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return bool(libc.syscall(_RESTRICT, made, 0) == 0)
    finally:
        os.close(made)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        libc.syscall(_ADD, ruleset, 1, ctypes.byref(_Beneath(rights, parent)), 0)
    finally:
        os.close(parent)


def wrapped(argv: tuple[str, ...], folder: object) -> tuple[str, ...]:
    """The command that becomes `argv` once it may write below `folder` only."""
    return sys.executable, "-I", "-S", __file__, str(folder), "--", *argv


def main() -> int:
    """Give up the rights, and become the program that is named. Says why as the gate does where it cannot."""
    folder, argv = sys.argv[1], sys.argv[3:]
    restrict(folder)
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        print(f"nightporter-gate: {argv[0]}: {error.strerror}", file=sys.stderr)
        return 126


if __name__ == "__main__":
    sys.exit(main())
