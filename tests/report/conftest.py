"""A script that another environment runs, with packages that are not here."""

collect_ignore = ["tracked.py"]
