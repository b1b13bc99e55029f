# SPDX-License-Identifier: MIT
"""A function on another CPU, in a copy of this process: for work of a second that two CPUs do in half of it."""

import os
import pickle
import signal

from .errors import UserError


class Forked:
    """Calls FUNCTION(*ARGS) in a child at once; result() waits for what it returned, or raises the UserError it raised.

    Whoever leaves without result() calls drop(). What the function prints or changes is lost.
    """

    def __init__(self, function, *args):
        self._read, write = os.pipe()
        self._child = os.fork()
        if not self._child:
            status = 1
            try:
                os.close(self._read)
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                with open(write, "wb") as pipe:
                    pickle.dump(self._call(function, args), pipe, pickle.HIGHEST_PROTOCOL)
                status = 0
            finally:
                os._exit(status)  # no buffer, no handler and no test of the parent's runs twice
        os.close(write)

    @staticmethod
    def _call(function, args):
        try:
            return True, function(*args)
        except UserError as error:
            return False, (type(error), str(error), error.status)

    def result(self):
        with open(self._read, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(self._child, 0)
        self._child = None
        if status or not data:
            raise UserError("a process that read a file for this one ended before it was done: is there enough memory?")
        good, value = pickle.loads(data)
        if good:
            return value
        kind, text, code = value
        error = kind(text)
        error.status = code
        raise error

    def drop(self):
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            os.close(self._read)
            self._child = None
