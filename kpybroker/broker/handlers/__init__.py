"""Handlers: one module for each API. It turns a request into calls of services, and their results into a response.

Each module opens with a ledger of the versions it serves, and has `handle` and `error_response`. Never here: state that
outlives a request, sockets, files. The way in is `routes.load`; what a handler may use is `broker.Broker`.
"""
