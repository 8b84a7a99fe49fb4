"""What carries offsets and records from one place to another: `offsets export` and `import`, `replay`, `mirror`.

A copy is at least once: a record counts as copied when the target has acknowledged it, and only then its offset is
committed. What never lives here: how records and tables look (`records`, `show`), and what stays in one place
(`actions`). One module a command, and `copying`, which they share.
"""
