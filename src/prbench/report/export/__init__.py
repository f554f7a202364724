"""EXPORT: a finished run in the forms that other tools read.

Every form starts from a run that is finished and verifies, is computed whole in memory, and only then written: beside
its place and renamed, so a reader never meets half a file.
"""

from prbench.report.export.door import EXPORTS, Export, export

__all__ = ["EXPORTS", "Export", "export"]
