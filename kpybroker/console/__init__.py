"""`kpybroker console`: a cluster in the browser, ours or any other Kafka.

A process of its own, and a client like any other: pages are made here, from what `kpybroker.client` asks the cluster.
`serve.serve` runs it, and `app.make_app` makes the application.

- `pages`: one module a page, from a request to a template.
- `queries`: what a page asks the cluster; synchronous, with limits, and without HTTP.
- `web`: what all pages share: sessions, headers, forms, templates, the live connection to the cluster.
- `templates`, `static`: HTML, and the files that a browser loads. htmx and uPlot are there as they were released.

What never lives here: a script or a style in a page, a request to another host, code of a broker. Nothing is changed
in the cluster unless `--allow-changes` was given.
"""
