"""What runs in the background while a broker serves: retention, compaction, flushes, checkpoints, deletions.

Start at `background.start`, which `app` calls once; `log_cleaner.LogCleaner` is compaction, `roll_flusher.RollFlusher`
the flushes after a segment is rolled.

Never here: requests, and what a log does to its files (`kpybroker.storage`).
"""
