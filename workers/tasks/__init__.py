"""All tasks. Importing the package registers them."""

from workers.tasks import annotation, arena, imports, training

__all__ = ["annotation", "arena", "imports", "training"]
