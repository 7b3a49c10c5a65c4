"""Ways into the IR from Python: tracing of pipelines."""
