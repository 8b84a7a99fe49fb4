"""Website activity: counts per page in windows of event time, the top pages of each, and sessions."""
