"""Pages of what is next to the cluster: a schema registry. What never lives here: a request to a broker."""
