"""How results look: tables for people, JSON and YAML for programs.

`output.Output` is the way in. What never lives here: where the rows are from. Standard output gets results only;
everything else goes to standard error.
"""
