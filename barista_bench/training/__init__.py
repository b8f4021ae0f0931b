"""Make training sets from annotations: chats, preferences and prompts for TRL, and boxes and masks for specialists.

Only videos of the training split are exported. Videos are compared by content, so a test video of any of the named
benchmarks is refused under any id.
"""
