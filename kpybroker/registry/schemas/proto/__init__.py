"""Protobuf as text: a .proto file as a syntax tree, and the tree as Confluent's registry prints it.

`reader.read` makes the tree, `printer.printed` the text, `names.Names` says what the name of a type means. There, a
parser of its own (Wire's) reads the files, and no protoc: what it takes and refuses is taken and refused here. Options
that no file defines are kept, and numbers are not checked. What never lives here: protoc, versions, subjects.
"""
