"""Resource plugins for the Eru scheduler, each compiled into one self-contained file."""

__version__ = "0.1.0"
