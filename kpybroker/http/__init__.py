"""HTTP/1.1 on trio, by h11: what the control channel and the metrics share.

A `HttpServer` gets a function from `Request` to `Response`. What it bounds: bodies, headers, connections.

Never here: what is served.
"""
