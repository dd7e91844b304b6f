"""Settings of the suite: the embedded defaults unless DATABASE_URL and REDIS_URL say otherwise."""

import os
import tempfile

os.environ.setdefault("SECRET_KEY", "only-for-tests")
if "PYTEST_XDIST_WORKER" in os.environ or "PALATE_HOME" not in os.environ:
    # Every process of the suite has its own: a shared cache would be cleared by the others.
    os.environ["PALATE_HOME"] = tempfile.mkdtemp(prefix="palate-tests-")
os.environ.setdefault("CELERY_EAGER", "1")
os.environ.setdefault("LOG_LEVEL", "WARNING")

from webapp.settings import *  # noqa: F403
from webapp.settings import DATABASES, MIDDLEWARE, PALATE_HOME, REST_FRAMEWORK

ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = True
REST_FRAMEWORK = {
    **REST_FRAMEWORK,
    "DEFAULT_THROTTLE_RATES": {"anon": "100000/min", "user": "100000/min"},
}
DATABASES["default"]["CONN_MAX_AGE"] = 0
if not os.environ.get("DATABASE_URL"):
    # A file, not memory: there the threads of a live server would share the test's connection, and
    # one would begin a transaction within that of another.
    DATABASES["default"]["TEST"] = {"NAME": str(PALATE_HOME / f"tests-{os.getpid()}.sqlite3")}
    DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
if os.environ.get("PALATE_TEST_DELAY"):
    MIDDLEWARE = ["tests.slow_answers.slow_answers", *MIDDLEWARE]
