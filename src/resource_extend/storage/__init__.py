"""The storage resource: volumes, disk quotas, storage space."""
