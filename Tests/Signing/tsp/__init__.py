"""TSP/1 in Python, written from docs/transaction-signing.md alone: a device, a server, a verifier and attacks.

It is a second implementation to test the first one with. It keeps secrets in plain variables and its big-integer
arithmetic is not constant-time: do not use it for anything real.
"""
