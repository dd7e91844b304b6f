"""Small filters that the components need."""

from collections.abc import Iterable, Mapping

from django import template

register = template.Library()


@register.filter
def lookup(mapping: object, key: str) -> object:
    """`mapping[key]`, or an empty string where there is no mapping or no such key."""
    return mapping.get(key, "") if isinstance(mapping, Mapping) else ""


@register.filter
def first_error(errors: object) -> object:
    """The first sentence of a list of errors; a single sentence stays what it is."""
    if isinstance(errors, str) or not isinstance(errors, Iterable):
        return errors or ""
    return next(iter(errors), "")
