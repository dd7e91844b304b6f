"""Exports: what is kept, how it is split, and what each format writes. Pure: no Django, no models.

`options` what was asked · `rows` what an item is · `selection` kept or left out, and why · `splits`
no leaks between train and test · `rendering`, `trl`, `openai`, `pairs` what a record holds ·
`columns` their types · `writers` files.
"""
