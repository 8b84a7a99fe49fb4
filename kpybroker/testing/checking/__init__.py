"""What keeps a test from passing by accident: calls, files and faults are checked, and each error has a fix.

What never lives here: what a call does (`kpybroker.testing`), and what only a broker can know of it, such as which
topics there are (`kpybroker.control`). Start at `calls`.
"""
