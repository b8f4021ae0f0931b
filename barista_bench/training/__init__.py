"""Training sets of the annotations: chats and preferences for TRL, boxes and masks for specialists.

Only videos of the training split leave this room. Videos are compared by content, so that one which any of the
benchmarks named tests on is refused, under whatever id it stands.
"""
