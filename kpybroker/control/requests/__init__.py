"""Faults in requests and a log of them: what a process with a control channel puts around its dispatchers.

`Interceptor.respond_now` takes the place of `Dispatcher.respond_directly`; without one, nothing here is imported. It
works on frames, as a proxy in front of the broker would, so that handlers and their shortcuts know nothing about it.
Rules and their effects on messages are pure (`control.rules`); here is what waits, disconnects and counts.

The way in is `interceptor.Interceptor`. Never here: what an API means, HTTP, and faults of disks or of the network.
"""
