"""The methods of the channel, a module a subject; each has `METHODS`, and `control.catalogue` lists them.

What never lives here: what a method changes in a broker; that is a lever of the part it belongs to.
"""
