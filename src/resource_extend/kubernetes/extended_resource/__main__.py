"""`python -m resource_extend.kubernetes.extended_resource`: the same as the console script."""

from resource_extend.kubernetes.extended_resource.cli import run

if __name__ == "__main__":
    run()
