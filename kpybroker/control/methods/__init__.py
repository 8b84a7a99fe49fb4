"""The methods of the channel, a module a subject; each has `METHODS`, and `registry.all_methods` lists the modules.

What never lives here: what a method changes in a broker; that is a lever of the part it belongs to.
"""
