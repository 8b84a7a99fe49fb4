"""Whether a broker is ready, for programs: reports to a service manager, and `kpybroker ping`.

What never lives here: how a broker becomes ready, which is `kpybroker.cli.run`'s.
"""
