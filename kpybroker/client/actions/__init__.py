"""What the commands do: one module a noun, from options to rows and an exit code.

An action takes the connection and its options, asks the cluster, and prints through `show`. Whatever fails for one
item is reported and does not keep the others from being done. What never lives here: click, formats of records.
"""
