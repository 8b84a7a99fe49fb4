"""Where the brokers of a test run, and how they are reached: the child process, the thread, the channel's client.

What never lives here: what a test calls (`kpybroker.testing`). Start at `launch`.
"""
