"""The shells of security: what connects the rules of `kpybroker.core.security` to connections, files and the tree.

A broker imports a module of this package only where its configuration asks for what is in it. Never here: rules that
can be stated without I/O, and the APIs that administrators call (`handlers.security`).
"""
