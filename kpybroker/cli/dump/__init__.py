"""What `kpybroker log dump` and `verify` do and print. `cli.log` declares them and imports this when one runs."""
