"""Exits: what the end of a child process means. The one place where an exit status becomes an error class."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

from nightporter.errors import NightporterError
from nightporter.outside.commands import Command
from nightporter.outside.files import read_regular
from nightporter.outside.processes import Finished, NotStarted
from nightporter.words import Ended, ErrorClass

_KILLED = 128 + signal.SIGKILL
_OUT_OF_TIME = 128 + signal.SIGXCPU


def exit_code(finished: Finished) -> int:
    """The code as a shell gives it: 128 and the signal's number for a child that a signal ended."""
    return 128 - finished.code if finished.code < 0 else finished.code


def log_of(finished: Finished) -> str:
    """Standard error, with what the desk has to add about processes that were left."""
    lines = [finished.stderr.text] if finished.stderr.head or finished.stderr.cut else []
    if finished.left_behind:
        lines.append(f"[it left {_processes(finished.left_behind)} behind; they were ended]")
    if finished.lingering:
        lines.append(f"[{_processes(finished.lingering)} could not be ended: the kernel does not let go]")
    return "\n".join(line.rstrip("\n") for line in lines)


def timed_out(command: Command, finished: Finished, text: str) -> Ended:
    """The end of a child that was ended for its timeout."""
    return Ended.timed_out(f"it ran longer than its timeout of {_duration(command.timeout)} and was ended",
                           text=text, log=log_of(finished))


def cancelled(finished: Finished, text: str) -> Ended:
    """The end of a child that was ended because its run was cancelled: what it had said and printed by then is kept."""
    return Ended.cancelled(text=text, log=log_of(finished))


def badly(command: Command, finished: Finished, text: str, *, by_shell: bool = False) -> Ended:
    """The end of a child with a code other than zero. `by_shell`: codes 126 and 127 are the shell's own words."""
    code = exit_code(finished)
    log = log_of(finished)
    last = _last_line(finished.stderr.text)
    said = f": {last}" if last else ""
    if code == _OUT_OF_TIME and command.ceilings.cpu is not None:
        return Ended.timed_out(f"it used more than its {command.ceilings.cpu} s of processor time and was ended",
                               text=text, log=log)
    if code == _KILLED:
        # Not our doing, or it would have timed out or been cancelled: mostly the kernel, out of memory.
        return Ended.failed(
            ErrorClass.RESOURCE, "it was killed (SIGKILL) and not by the desk; most often the machine is out of memory",
            text=text, log=log, exit_code=code)
    if finished.not_executed:
        return Ended.failed(
            ErrorClass.CONFIGURATION,
            f"the program {command.argv[0]!r} cannot be executed; {_why_not_executed(command.argv[0])}",
            text=text, log=log, exit_code=code)
    if by_shell and code in (126, 127):
        what = "is not there" if code == 127 else "cannot be executed"
        next = _BESIDE if code == 127 and _starts_in_scratch(command) else ""
        return Ended.failed(ErrorClass.CONFIGURATION, f"a command it calls {what} (exit code {code}){said}{next}",
                            text=text, log=log, exit_code=code)
    if finished.code < 0:
        how = f"it was ended by {_signal(-finished.code)}{said}"
    else:
        how = f"it ended with exit code {code}{said}"
    return Ended.failed(ErrorClass.NONZERO_EXIT, how, text=text, log=log, exit_code=code)


_BESIDE = ("; it works in the run's scratch folder: `./` before the name of a file beside the definition, or `cwd: .` "
           "for the folder of the definition")


def _starts_in_scratch(command: Command) -> bool:
    return command.cwd.parent.name == "scratch" or command.cwd.name.startswith("nightporter-")


def _why_not_executed(program: str) -> str:
    try:
        first = b"".join(read_regular(Path(program), 300).splitlines(keepends=True)[:1])
    except OSError:
        first = b""
    if first.startswith(b"#!") and first.endswith(b"\r\n"):
        return ("its first line ends as lines of Windows do, and so names an interpreter that is not there; save it "
                "with line ends of Unix")
    return ("the interpreter its first line names is missing, or it is made for another machine; correct the line, or "
            "write the interpreter into `command`")


def misconfigured(error: NightporterError) -> Ended:
    """A configuration failure with all three parts of the error in it."""
    return Ended.failed(ErrorClass.CONFIGURATION, one_line(error))


def one_line(error: NightporterError) -> str:
    return "; ".join(part for part in (error.what, error.why, error.next) if part)


def unstartable(command: Command, error: NotStarted) -> Ended:
    """The kernel would not start a process: for want of something, which may pass, or for good."""
    return Ended.failed(ErrorClass.RESOURCE if error.passing else ErrorClass.CONFIGURATION,
                        f"{command.argv[0]!r} could not be started: {error}")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _duration(timeout: timedelta | None) -> str:
    return "none" if timeout is None else f"{timeout.total_seconds():g} s"
