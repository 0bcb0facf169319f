"""Language models: the embedded one, vLLM, and whatever DSPy reaches itself."""
