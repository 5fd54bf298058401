"""What runs inside a packed file before the plugin does."""
