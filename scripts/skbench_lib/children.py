# SPDX-License-Identifier: MIT
"""Child processes that end with us: each leads a process group, which is killed on a time-out or an interrupt."""

import contextlib
import os
import signal
import subprocess
import threading

_running = set()


class Ended:
    """How a child ended: its exit status (negative: a signal), or timed_out; out and err if they were captured."""

    def __init__(self, status, timed_out, out=None, err=None):
        self.status = status
        self.timed_out = timed_out
        self.out = out
        self.err = err

    def why(self, seconds):
        """A phrase for a child that did not do its work within SECONDS."""
        if self.timed_out:
            return f"did not end within {seconds:g} s"
        if self.status < 0:
            try:
                return f"was killed by {signal.Signals(-self.status).name}"
            except ValueError:
                return f"was killed by signal {-self.status}"
        return f"exited with status {self.status}"


def kill_group(child):
    """Kills CHILD and all that it started, reaps it and closes its pipes."""
    _kill(child)
    child.communicate()


def kill_all():
    """Ends every child that run() waits for, in any thread."""
    for child in list(_running):
        _kill(child)


def _kill(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextlib.contextmanager
def delayed():
    """What would interrupt the block waits for its end. Around the start of a child: an exception in the midst of
    subprocess.Popen() leaves one that runs and that nobody knows."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    came = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda *what: came.append(what))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in came:
            before[number](number, frame)


@contextlib.contextmanager
def started(command, **how):
    """COMMAND as a child; HOW as for subprocess.Popen, which may raise OSError. An exception in the block ends it and all
    that it started."""
    child = None
    try:
        with delayed():
            child = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, **how)
        yield child
    except BaseException:
        if child is not None:
            kill_group(child)
        raise


def run(command, seconds, **how):
    """Runs COMMAND for at most SECONDS; HOW as for subprocess.Popen. Returns an Ended. Raises OSError if it cannot start."""
    with started(command, **how) as child:
        _running.add(child)
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            kill_group(child)
            return Ended(child.returncode, True)
        finally:
            _running.discard(child)
    return Ended(child.returncode, False, out, err)


def each(function, items):
    """[FUNCTION(item) for each of ITEMS], on all CPUs at once. The first that raises ends the children of the others."""
    import concurrent.futures  # a tenth of a second, which only who starts children pays

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # A thread may be about to start its child: kill until none is at work. What was cancelled never counts as
            # done, since no thread is left to say so.
            started = [future for future in futures if not future.cancelled()]
            while concurrent.futures.wait(started, timeout=0.05).not_done:
                kill_all()
            raise
        return [future.result() for future in futures]
