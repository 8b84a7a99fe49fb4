"""The start and the end of a broker, in steps that `app` calls in order, and the errors that end a start.

Start at `startup` (the steps), then `open_tree` and `controlled_shutdown`; `errors` has `StartupError` and the exit
codes.

Never here: anything that runs while the broker serves (`maintenance`), or the order of the steps (`app`).
"""
