"""The report page: one file to mail and open offline, with the ranking, the charts and every pair to look at."""

from prbench.report.page.assemble import MAX_BYTES, report_page

__all__ = ["MAX_BYTES", "report_page"]
