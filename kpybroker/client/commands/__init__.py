"""The command line of the client commands: names, options and help, with click and nothing else.

One module a noun. A command's function imports its action and returns the exit code; `options.client_command` gives
it the connection and reports its errors. What never lives here: an import of confluent-kafka or rich.
"""
