"""Files of a run, for rooms that still look for them here."""

from prbench.results.folder import (
    LOCK,
    SYNC_RECORDS,
    Appender,
    RunFolder,
    cut_torn_line,
    whole_lines,
    write_whole,
)

__all__ = ["LOCK", "SYNC_RECORDS", "Appender", "RunFolder", "cut_torn_line", "whole_lines", "write_whole"]
