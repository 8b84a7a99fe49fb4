"""Every page and its path; a new page is added here."""

from __future__ import annotations

from starlette.routing import Route

from kpybroker.console.pages import cluster, login, topics

ROUTES = [
    Route("/", cluster.page),
    Route("/login", login.form, methods=["GET"]),
    Route("/login", login.log_in, methods=["POST"]),
    Route("/logout", login.log_out, methods=["POST"]),
    Route("/topics", topics.listing),
    Route("/topics/{name}", topics.one),
    Route("/topics/{name}/configuration", topics.configuration),
    Route("/topics/{name}/rates.json", topics.rates),
]
