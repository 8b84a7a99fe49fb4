"""Every family that a broker has values for, a module for each area.

docs/reference/metrics.md is made from them: `tests.metrics.families` has them in the order of that page, and
`tests.metrics.absent` what is left out, with its reason.
"""
