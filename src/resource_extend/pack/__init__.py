"""From a plugin class to one file that starts fast."""
