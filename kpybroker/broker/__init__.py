"""The broker: trio code that reads requests, asks the pure rooms (`core`, `storage`), and does what they decide.

Each package below may import only those that come after it: `app > handlers, lifecycle > maintenance > coordinators >
replication > cluster > peers > security > requests > network > loop`.

Never here: rules that could be pure. The way in is `app.Broker`, which builds all parts; an API is a module of
`handlers`.
"""
