"""Report: the live view of a run, and the page that shows it afterwards. No torch."""

from longstride.report.html import write_report
from longstride.report.live import Live

__all__ = ["Live", "write_report"]
