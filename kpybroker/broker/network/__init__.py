"""Bytes in and out: TCP and TLS streams, frames, request memory, responses on their way out.

Never here: what the bytes mean. The way in is `transport.Transport`; `frames.FrameReader` reads requests from a stream.
"""
