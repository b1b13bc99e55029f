# SPDX-License-Identifier: MIT
"""What ends a command early, and the exit statuses of every command."""

OK = 0
WORSE = 1  # a confirmed regression, or counts that differ from the stored ones
USAGE = 2  # wrong usage or broken input, an empty selection too
INCONCLUSIVE = 3  # too noisy to say, or the control failed
IMPOSSIBLE = 4  # not comparable, or not possible on this machine
FAILED = 5  # a case crashed, timed out or failed its check
INTERRUPTED = 130


class UserError(Exception):
    """Something the user can act on.

    TEXT is one sentence that names the remedy; the command line prints it on standard error and exits with STATUS.
    """

    def __init__(self, text, status=USAGE):
        super().__init__(text)
        self.status = status
