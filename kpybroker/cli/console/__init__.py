"""`kpybroker console` on the command line: its options, which import click and nothing else until it runs.

What never lives here: the console itself (`kpybroker.console`).
"""
