"""Where the devices of a resource come from, what identifies them, how well they are, and how they are handed out."""
