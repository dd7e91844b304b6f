"""All tasks. Importing the package registers them."""

from workers.tasks import annotation, arena, imports

__all__ = ["annotation", "arena", "imports"]
