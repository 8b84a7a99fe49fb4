"""The command line: `kpybroker dev`, `server` and `log`. Commands that talk to a cluster are in `kpybroker.client`.

What never lives here: what a broker does once it runs (`kpybroker.broker`), and what its keys mean
(`kpybroker.config`). Start from `main`, which declares the commands; `run` starts and stops a broker.
"""
