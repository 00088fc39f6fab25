"""Every fault that recrawl raises, as one tree.

Expected outcomes (a 404, a refusal by robots.txt, a link outside the scope) are values of
`recrawl.tables.vocabulary`, never exceptions. What is raised is a fault: somebody has to act.
Each fault says in one sentence what is wrong and, where there is one, the mend. Faults cross
process borders (Spark workers to the driver), so each is rebuilt from its arguments alone.
"""

from __future__ import annotations


class RecrawlError(Exception):
    """The root of the tree.

    Args:
        message: what is wrong, one sentence.
        mend: what the reader can do about it, one sentence; empty when there is nothing to say.
    """

    #: The exit status of the command line for this kind of fault.
    exit_status = 1

    def __init__(self, message: str, mend: str = "") -> None:
        super().__init__(message, mend)
        self.message = message
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.message} {self.mend}".rstrip()


class ConfigurationError(RecrawlError):
    """A configuration that can't be used: unknown key, wrong type, impossible value."""

    exit_status = 2


class UsageError(RecrawlError):
    """A command or a trigger form that asks for something that does not exist."""

    exit_status = 2


class StorageError(RecrawlError):
    """The storage root can't be read or written."""


class TableError(RecrawlError):
    """A table is missing, newer than this program, or breaks its contract."""


class LeaseHeldError(RecrawlError):
    """Another process owns the crawl (rule R7: one writer)."""


class LeaseLostError(RecrawlError):
    """This process's lease was taken over; it must stop writing."""


class RoundStateError(RecrawlError):
    """The round is in a state in which the step can't run."""


class LawBrokenError(RecrawlError):
    """A conservation law of R5 does not hold; the round must not be folded."""


class WarcError(RecrawlError):
    """A WARC file that can't be read at the offset asked for, or that can't be written."""


class PartitionLostError(RecrawlError):
    """A fetch attempt found that a newer attempt owns its partition."""


class EnvironmentFaultError(RecrawlError):
    """The machine lacks something: Java, jars, memory, a free port, disk space."""
