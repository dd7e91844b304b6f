"""All tasks. Importing the package registers them."""

from workers.tasks import arena, imports

__all__ = ["arena", "imports"]
