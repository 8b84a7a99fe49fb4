"""Product suggestion: what is bought together, and what each user may want, in topics that a service reads."""
