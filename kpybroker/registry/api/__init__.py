"""The REST interface: routes, bodies and errors in Confluent's form, and who may come in.

`app.make_app` is the way in. Handlers are synchronous and run in threads; what a request means is in `rules`.
"""
