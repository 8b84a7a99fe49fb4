"""Where results are written: files of any file system, topics, tables. Used by `runtime.outputs`."""
