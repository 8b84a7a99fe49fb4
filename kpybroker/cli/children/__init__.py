"""What `dev` runs next to its brokers, as processes that end with them: the console and the schema registry.

`wishes` has what can be asked for, `child` how it is run. What never lives here: the commands themselves, which are
those that a user starts (`kpybroker.cli.console`, `kpybroker.cli.registry`).
"""
