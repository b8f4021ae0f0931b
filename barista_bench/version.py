"""The package's version, for modules that record it without loading the Python API."""

__version__ = "0.1.0"
