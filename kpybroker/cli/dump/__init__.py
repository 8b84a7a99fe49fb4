"""What `kpybroker log` does: files of a log as text and JSON, and the merge of state-change logs.

The way in is `commands`, and `merge` for the merge. Never here: reading files of a log (`storage.inspection`).
"""
