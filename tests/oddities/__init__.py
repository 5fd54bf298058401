"""A plugin of everything that leaving parts out of a start could break."""
