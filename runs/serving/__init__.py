"""Starting the servers that hold the language model.

Parts of this package run in vLLM's own environment, so importing it needs the standard library only.
"""
