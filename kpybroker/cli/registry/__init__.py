"""`kpybroker registry` on the command line: its options, which import click and nothing else until it runs.

What never lives here: the registry itself (`kpybroker.registry`).
"""
