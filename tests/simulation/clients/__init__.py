"""Clients as small machines over `wire`: each does one thing at random and notes what it sent, got and read."""
