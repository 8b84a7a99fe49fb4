"""Readers: each takes the parts whose values it reads, and has `async def read(budget)` (`measured.Reader`).

Never here: counting (that is where something happens), names and meanings (`kpybroker.metrics`), sending.
"""
