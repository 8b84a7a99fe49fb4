"""Every page and its path; a new page is added here."""

from __future__ import annotations

from starlette.routing import Route

from kpybroker.console.pages import clients, cluster, development, groups, login, look, messages, metrics, topics

ROUTES = [
    Route("/", cluster.page),
    Route("/brokers/{broker:int}", cluster.broker),
    Route("/login", login.form, methods=["GET"]),
    Route("/login", login.log_in, methods=["POST"]),
    Route("/logout", login.log_out, methods=["POST"]),
    Route("/look", look.change, methods=["POST"]),
    Route("/topics", topics.listing),
    Route("/topics/{name}", topics.one),
    Route("/topics/{name}/configuration", topics.configuration),
    Route("/topics/{name}/rates.json", topics.rates),
    Route("/topics/{name}/groups", topics.readers),
    Route("/topics/{name}/messages", messages.listing),
    Route("/topics/{name}/messages/{partition:int}/{offset:int}", messages.one),
    Route("/topics/{name}/messages/{partition:int}/{offset:int}/raw", messages.raw),
    Route("/topics/{name}/follow", messages.follow),
    Route("/topics/{name}/download.{form}", messages.download),
    Route("/topics/{name}/produce", messages.produce_form, methods=["GET"]),
    Route("/topics/{name}/produce", messages.send, methods=["POST"]),
    Route("/topics/{name}/produce-lines", messages.send_all, methods=["POST"]),
    Route("/replication", cluster.replication),
    Route("/log-dirs", cluster.directories),
    Route("/transactions", cluster.transactions),
    Route("/access", cluster.access),
    Route("/metrics/{page}", metrics.now),
    Route("/metrics/{page}/{key}.json", metrics.chart),
    Route("/requests", development.requests),
    Route("/clients", clients.listing),
    Route("/clients/{broker:int}/{instance}", clients.one),
    Route("/logs", development.log_lines),
    Route("/faults", development.faults, methods=["GET"]),
    Route("/faults", development.change_faults, methods=["POST"]),
    Route("/clock", development.clock, methods=["GET"]),
    Route("/clock", development.advance, methods=["POST"]),
    Route("/groups", groups.listing),
    Route("/group", groups.one),
    Route("/group/lag.json", groups.lag),
    Route("/group/move", groups.preview, methods=["GET"]),
    Route("/group/move", groups.move, methods=["POST"]),
    Route("/group/forget", groups.forget_preview, methods=["GET"]),
    Route("/group/forget", groups.forget, methods=["POST"]),
]
