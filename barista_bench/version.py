"""The package's version, for whoever writes it down, without the package's interface."""

__version__ = "0.1.0"
