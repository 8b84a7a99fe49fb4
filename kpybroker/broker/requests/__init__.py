"""From a frame to a response: connections and their limits, routing, the context that handlers get.

Never here: what an API means (`broker.handlers`) and how bytes travel (`broker.network`). The way in is
`server.Server`, which gives frames to a `dispatch.Dispatcher`.
"""
