"""Log compaction: the work on files, which runs in a process of its own, and the swap of its result into the log.

Which log is cleaned, and when, is decided elsewhere (`broker.maintenance.log_cleaner`, `core.log.cleaner_plan`).
Start from `process` on the side of the process, and from `cleaned` on the side of the broker.
"""
