#!/usr/bin/env python
"""Django's command line for Palate."""

import os
import secrets
import sys

SIGNS_NOTHING = ("rate",)  # rates a file: no database, no sessions, so no secret is needed


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    if sys.argv[1:2] and sys.argv[1] in SIGNS_NOTHING:
        os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
