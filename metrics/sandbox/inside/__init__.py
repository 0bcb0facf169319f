"""What runs inside a sandbox: the supervisor and the steps that make a process harmless.

These modules import the standard library and each other only: inside a sandbox nothing else of the project exists.
"""
