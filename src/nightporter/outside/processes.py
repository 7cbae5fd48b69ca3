"""Child processes: started behind a gate, listened to within bounds, and ended with everything they started.

The start has two phases. The child comes up as a shell that waits for one line on its standard input; only when its
group is written down and the guard watches it does it get that line and become the program. A desk that dies in
between closes the pipe, and the shell ends without having started anything.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from nightporter.outside import groups
from nightporter.outside.commands import ANSWER, Command, impose
from nightporter.outside.guard import Guard
from nightporter.outside.pipes import Heard, Pipes

GRACE = timedelta(seconds=2)
"""Between SIGTERM and SIGKILL."""

_GATE = f'read -r {groups.MARK} || exit 125; export {groups.MARK}; exec "$@"'
_GATE_NAME = "nightporter-gate"
"""What the shell calls itself when it complains about the program."""
_LAST_WORDS = timedelta(milliseconds=250)
"""For what a finished leader left writing, such as the `tee` of `exec > >(tee log)`."""
_WAY_OUT = timedelta(milliseconds=30)
"""Between a process's closing its outputs and its end."""
_GONE_WITHIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Finished:
    """How the child ended, and what it left."""

    code: int
    """The exit code; negative for the signal that ended it."""
    timed_out: bool
    stdout: Heard
    stderr: Heard
    answer: Heard
    left_behind: int = 0
    """Processes still in its group when it had ended; they were ended too."""
    lingering: int = 0
    """Processes that the kernel had not let go 5 s after SIGKILL."""

    @property
    def not_executed(self) -> bool:
        """The gate was opened, but the kernel did not take the program: no interpreter, or for another machine."""
        return self.code in (126, 127) and self.stderr.head.startswith(_GATE_NAME.encode() + b":")


class NotStarted(Exception):
    """The kernel gave no process. `passing`: for want of something that may be there again later."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.passing = error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class CutShort(asyncio.CancelledError):
    """The caller was cancelled, and the child was ended for it; what it had said by then."""

    def __init__(self, finished: Finished) -> None:
        super().__init__()
        self.finished = finished


async def run_child(command: Command, started: Callable[[int, int], Awaitable[None]], guard: Guard | None) -> Finished:
    """Start a child, wait for its end, and return what it left.

    When its leader ends, the rest of its group is ended; when it is ended for its timeout or a cancel, so is
    everything else it started, in sessions of their own too.

    `started(group, birth)` must be durable when it returns; if it raises, the program was never executed and the
    error is passed on. Cancelling ends the child before the CancelledError leaves, a CutShort; a second cancel shortens
    the grace. Raises NotStarted.
    """
    try:
        child = _Child(command)
    except OSError as error:
        raise NotStarted(error) from error
    try:
        await started(child.group, child.birth)
        if guard is not None:
            guard.watch(child.group, child.birth)
        child.let_go()
        timed_out = not await child.ends_within(command.timeout)
        await child.end(hurried=timed_out)
        return child.finished(timed_out)
    except BaseException as error:
        await _in_any_case(child)
        if isinstance(error, asyncio.CancelledError):
            raise CutShort(child.finished(False)) from error
        raise
    finally:
        child.close()
        if guard is not None:
            guard.forget(child.group)


async def _in_any_case(child: _Child) -> None:
    """End the child although the caller is being cancelled, perhaps again."""
    ending = asyncio.ensure_future(child.end(hurried=True))
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # The caller's own cancel is raised again by whoever called us; here it only means: faster.
            child.grace = timedelta(0)


class _Child:
    """One child from the gate to the grave. Lives in one event loop."""

    def __init__(self, command: Command) -> None:
        self.grace = GRACE
        self._loop = asyncio.get_running_loop()
        self._stdout = Heard(command.output_limit)
        self._stderr = Heard(command.output_limit)
        self._answer = Heard(command.answer_limit)
        self._left_behind = 0
        self._lingering = 0
        self._strays = True
        self._gone = False
        self._let_go = False
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._pipes = Pipes()
        environment = dict(command.environment)
        passed: tuple[int, ...] = ()
        heard_at, written_at = os.pipe() if command.answer_limit else (-1, -1)
        if command.answer_limit:
            environment[ANSWER] = str(written_at)
            passed = (written_at,)
        try:
            # The gate's pipe and the program's standard input are one: a shell's `read` takes no byte beyond
            # the line it is given.
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, _GATE_NAME, *command.argv],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if command.merged else subprocess.PIPE,
                cwd=command.cwd, env=environment, start_new_session=True, pass_fds=passed, bufsize=0,
            )
        except BaseException:
            if command.answer_limit:
                os.close(heard_at)
            raise
        finally:
            if command.answer_limit:
                os.close(written_at)
        self.group = self._process.pid
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(self.group)
            # Nobody but us takes the leader off, so it is there, dead or alive.
            self.birth = groups.birth_of(self.group) or 0
            impose(self.group, command.ceilings)
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._close_pipes()
            for descriptor in (self._pidfd, heard_at):
                if descriptor >= 0:
                    os.close(descriptor)
            raise
        self._loop.add_reader(self._pidfd, self._has_exited)
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout is not None
        self._pipes.listen(stdout.fileno(), self._stderr if command.merged else self._stdout)
        if stderr is not None:
            self._pipes.listen(stderr.fileno(), self._stderr)
        if command.answer_limit:
            self._pipes.listen(heard_at, self._answer)
        self._answer_pipe = heard_at
        self._first_words = f"{groups.mark(self.group, self.birth)}\n".encode() + command.stdin

    # -- the work ------------------------------------------------------------------------------

    def let_go(self) -> None:
        """Open the gate: the shell becomes the program and finds its standard input behind it."""
        assert self._process.stdin is not None
        self._let_go = True
        self._pipes.say(self._process.stdin, self._first_words)

    async def ends_within(self, timeout: timedelta | None) -> bool:
        """Wait for the leader's end. False when the time is over first."""
        done, _ = await asyncio.wait({self._exited}, timeout=None if timeout is None else timeout.total_seconds())
        return bool(done)

    async def end(self, *, hurried: bool) -> None:
        """See to it that nothing of the child lives. `hurried`: the leader is still at work and has to go."""
        if self._gone:
            return
        if not self._let_go:
            self._process.kill()
            await asyncio.wait({self._exited})
        elif not hurried:
            if not self._pipes.silent.done():
                await asyncio.wait({self._pipes.silent}, timeout=_LAST_WORDS.total_seconds())
            # What made itself a session of its own was meant to stay: only the group is ended with its leader.
            self._strays = False
            if not self._was_alone():
                self._left_behind = len(await self._stayers())
                await self._end_living()
        else:
            await self._end_living()
        self._process.poll()
        self._pipes.drain()
        self._gone = True

    def finished(self, timed_out: bool) -> Finished:
        """The account of it, after `end`."""
        code = self._process.returncode
        return Finished(-signal.SIGKILL if code is None else code, timed_out, self._stdout, self._stderr,
                        self._answer, self._left_behind, self._lingering)

    def close(self) -> None:
        """Let go of every descriptor. Ends what lives, blocking, where the loop was torn down before `end` could."""
        if not self._gone:
            groups.end_group(self.group, self.birth, leaderless=True)
            self._process.poll()
        self._pipes.leave()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        if self._answer_pipe >= 0:
            os.close(self._answer_pipe)
        self._close_pipes()

    # -- ending --------------------------------------------------------------------------------

    def _living(self) -> list[int]:
        # Until we take the leader off, and then as long as a member lives, its number is nobody else's.
        return groups.living(self.group, self.birth, leaderless=True, strays=self._strays)

    def _was_alone(self) -> bool:
        """The leader has ended: take it off, and say whether its group went with it. Cheap, unlike a look at /proc."""
        self._process.poll()
        try:
            os.killpg(self.group, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # Members of another user: they live.
        return False

    async def _stayers(self) -> list[int]:
        # What closed its outputs just now is mostly on its way out: it is given the moment that takes.
        until = self._loop.time() + _WAY_OUT.total_seconds()
        while (pids := self._living()) and self._loop.time() < until:
            await asyncio.sleep(0.002)
        return pids

    async def _end_living(self) -> None:
        pids = self._living()
        started = self._loop.time()
        groups.send(signal.SIGTERM, self.group, self.birth, pids)
        while pids and self._loop.time() < started + self.grace.total_seconds():
            pids = await self._later()
        last = self._loop.time() + _GONE_WITHIN.total_seconds()
        while pids and self._loop.time() < last:
            groups.send(signal.SIGKILL, self.group, self.birth, pids)
            pids = await self._later()
        self._lingering = len(pids)

    async def _later(self) -> list[int]:
        if self._exited.done():
            await asyncio.sleep(0.01)
        else:
            await asyncio.wait({self._exited}, timeout=0.05)
        return self._living()

    def _has_exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        if not self._exited.done():
            self._exited.set_result(None)

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
