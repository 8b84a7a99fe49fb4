"""What the console can change, as data: each is a `change.Change`, which `catalogue` lists.

One page (`kpybroker.console.pages.changes`) makes of each a form, a preview and a result. A preview asks the cluster
and changes nothing; what is done is what it showed, or nothing. Each change is what a command of kpybroker does, by the
same functions, and names that command.

What never lives here: HTTP, HTML.
"""
