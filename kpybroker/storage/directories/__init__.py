"""All logs of a broker and the log directories that hold them: locks, checkpoints, creation, deletion, failures.

Nothing here reads or writes records. Start from `manager.LogManager`.
"""
