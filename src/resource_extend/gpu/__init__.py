"""The gpu resource: cards counted by product model."""
