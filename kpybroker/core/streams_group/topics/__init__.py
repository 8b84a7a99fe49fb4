"""The topology of an application and its topics: `topology` as members send it, `configuring` with the topics of now.

Never here: members, tasks of members, and the creation of topics.
"""
