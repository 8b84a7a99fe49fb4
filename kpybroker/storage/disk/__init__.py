"""Bytes and names on a disk: the seam to the operating system, and the formats of the small files of a log directory.

Nothing here knows a segment or a log. Start from `files.Files`, which every other module of storage reads and writes
through, `local_files` for the one of this machine, and `errors` for what storage raises.
"""
