"""`kpybroker log dump` and `kpybroker log verify`: reading the files of a log, also of one that a broker has open.

Nothing here writes to a disk, and nothing opens a `Log`. Start from `dump.dump` and `verify.verify`.
"""
