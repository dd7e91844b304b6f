"""All tasks. Importing the package registers them."""

from workers.tasks import arena

__all__ = ["arena"]
