"""The Kubernetes front door: a device plugin and a tool for extended resources set by hand."""
