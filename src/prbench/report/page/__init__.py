"""The report page: one file to mail and open offline, with the ranking, the charts and every pair to look at."""

from prbench.report.page.assemble import MAX_BYTES, report_page
from prbench.report.page.section import Section

__all__ = ["MAX_BYTES", "Section", "report_page"]
