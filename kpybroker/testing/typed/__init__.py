"""What the test kit's signatures are made of: Kafka's names, and what may be given where several of something are.

Nothing is imported here but `typing`. What never lives here: the types of the kit itself.
"""
