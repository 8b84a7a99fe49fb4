"""What all pages share: options, sessions, security headers, forms, templates, and the connection to the cluster.

What never lives here: what a page shows.
"""
