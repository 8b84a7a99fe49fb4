"""Every family that a broker has values for, a module for each area, and what is left out with its reason.

`registry.FAMILIES` is all of them, in the order of the page docs/reference/metrics.md, which is generated from here.
"""
