"""Settings, all from the environment. Embedded defaults need no server: SQLite and a data folder.

The variables are listed in docs/operators.md. There is no default secret: without `SECRET_KEY`
the process refuses to start, except where `PALATE_DEMO` says that this is a demonstration, where a
random one is kept in the data folder.
"""

from __future__ import annotations

import secrets
import shlex
import sys
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from pythonjsonlogger.core import RESERVED_ATTRS

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

PALATE_HOME = Path(env.str("PALATE_HOME", default=str(BASE_DIR / ".palate"))).resolve()
PALATE_HOME.mkdir(parents=True, exist_ok=True)

DEBUG = False
DEMO = env.bool("PALATE_DEMO", default=False)


def _secret_key() -> str:
    key: str = env.str("SECRET_KEY", default="")
    if key:
        return key
    if not DEMO:
        raise ImproperlyConfigured(
            "Set SECRET_KEY to a long random text (or PALATE_DEMO=1 to try it out)."
        )
    path = PALATE_HOME / "demo-secret"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(50))
    return path.read_text().strip()


SECRET_KEY = _secret_key()
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Behind TLS these are on; a demonstration on http://localhost cannot use them.
HTTPS = env.bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_SSL_REDIRECT = HTTPS
TRUST_PROXY = env.bool("TRUST_PROXY", default=False)
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_AGE = 14 * 24 * 3600
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Product settings
LEADERBOARD_PUBLIC = env.bool("LEADERBOARD_PUBLIC", default=True)
UNSEAL_APPROVALS = env.int("UNSEAL_APPROVALS", default=2)
INVITATION_DAYS = env.int("INVITATION_DAYS", default=7)
PERSONA_SUMMARY_LIMIT = env.int("PERSONA_SUMMARY_LIMIT", default=100)
# Hosts and networks that webhooks and model endpoints may reach although they are not public.
OUTBOUND_ALLOW: list[str] = env.list("OUTBOUND_ALLOW", default=[])
UPLOAD_LIMIT = env.int("UPLOAD_LIMIT_MB", default=512) * 1024 * 1024
# Base models: folders with weights, and what was converted from packages.
PALATE_MODELS = Path(env.str("PALATE_MODELS", default=str(PALATE_HOME / "models"))).resolve()
UNPACKED_LIMIT = env.int("UNPACKED_LIMIT_MB", default=4096) * 1024 * 1024
# Run directories: a folder that web, workers and GPU node share. Devices: "name" or "name:0+1",
# where the numbers are the GPUs that such a run sees.
PALATE_RUNS = Path(env.str("PALATE_RUNS", default=str(PALATE_HOME / "runs"))).resolve()
PALATE_RUNS_QUOTA_GB = env.float("PALATE_RUNS_QUOTA_GB", default=200.0)
# What executes a run directory: its Python may be another one, with CUDA and vLLM.
PALATE_TRAINER: list[str] = shlex.split(
    env.str("PALATE_TRAINER", default=f"{sys.executable} -m training.engine")
)
PALATE_DEVICES: list[str] = env.list("PALATE_DEVICES", default=["local"])
RUN_LOST_SECONDS = env.int("RUN_LOST_SECONDS", default=900)  # silence of a run on another machine
RUN_WATCH_SECONDS = env.float("RUN_WATCH_SECONDS", default=5.0)
RUN_STOP_SECONDS = env.int("RUN_STOP_SECONDS", default=600)  # from the request to SIGKILL

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "axes",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "webapp.core",
    "webapp.accounts",
    "webapp.catalog",
    "annotation",
    "arena",
    "training",
    "workers",
]

MIDDLEWARE = [
    "webapp.core.middleware.RequestLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.accounts.signing_in.SignedOutMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "webapp.core.middleware.ErrorMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "webapp.urls"
WSGI_APPLICATION = "webapp.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "webapp.core.context.site",
            ],
        },
    },
]


def _database() -> dict[str, Any]:
    url = env.str("DATABASE_URL", default="")
    if url:
        config: dict[str, Any] = dict(env.db_url_config(url))
        config["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", default=60)
        config["CONN_HEALTH_CHECKS"] = True
        return config
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": PALATE_HOME / "palate.sqlite3",
        "CONN_MAX_AGE": 60,
        "OPTIONS": {
            # Django ignores FOR UPDATE here: a transaction takes the write lock when it begins.
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default="")
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {
        # Shared by every process of the machine, so that rate limits count once.
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": PALATE_HOME / "cache",
    }
}

# Accounts
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "accounts:login"
CSRF_FAILURE_VIEW = "webapp.accounts.signing_in.csrf_failure"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "accounts:login"
AXES_FAILURE_LIMIT = env.int("LOGIN_FAILURE_LIMIT", default=8)
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_TEMPLATE = "429.html"
# What is never written down of a failed login: who, from where, and a form that waits to be sent.
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "kept"]
AXES_VERBOSE = False
AXES_ENABLE_ACCESS_FAILURE_LOG = False
AXES_DISABLE_ACCESS_LOG = True

# Languages
LANGUAGE_CODE = env.str("LANGUAGE_CODE", default="en")
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
FORMAT_MODULE_PATH = ["webapp.formats"]
TIME_ZONE = env.str("TIME_ZONE", default="UTC")

# Static files
STATIC_URL = "static/"
STATIC_ROOT = PALATE_HOME / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
MEDIA_ROOT = PALATE_HOME / "files"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_TEMP_DIR = None

# Content security policy: nothing inline, nothing from elsewhere.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    }
}

# API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.AnonRateThrottle",
        "rest_framework.throttling.UserRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {
        "anon": env.str("API_RATE_ANON", default="60/min"),
        "user": env.str("API_RATE_USER", default="600/min"),
        "downloads": env.str("DOWNLOAD_RATE", default="30/min"),  # without an account
    },
    # Only a proxy that is trusted says who asks; else anybody could say so in a header.
    "NUM_PROXIES": 1 if TRUST_PROXY else 0,
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.CursorPagination",
    "PAGE_SIZE": 100,
    "EXCEPTION_HANDLER": "webapp.core.api.exception_handler",
}
REST_KNOX = {"TOKEN_TTL": None, "AUTO_REFRESH": False, "TOKEN_PREFIX": "plt_"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Palate API",
    "DESCRIPTION": (
        "Blind rounds, votes and ratings; annotation of preference pairs. Nothing here names a "
        "contestant before its round is unsealed."
    ),
    "VERSION": "1",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {  # several things have a state
        "RoundStateEnum": "arena.enums.RoundState",
        "ProjectStateEnum": "annotation.enums.ProjectState",
        "MemberStateEnum": "annotation.enums.MemberState",
        "ItemStateEnum": "annotation.enums.ItemState",
    },
}

# Jobs: Celery carries ids; the database is the queue.
CELERY_BROKER_URL = REDIS_URL or "palate-files://localhost"  # workers/broker.py
_broker_folder = PALATE_HOME / "broker"
if not REDIS_URL:
    for _name in ("messages", "control", "processed"):
        (_broker_folder / _name).mkdir(parents=True, exist_ok=True)
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": 3600}
    if REDIS_URL
    else {
        "data_folder_in": str(_broker_folder / "messages"),
        "data_folder_out": str(_broker_folder / "messages"),
        "processed_folder": str(_broker_folder / "processed"),
        "control_folder": str(_broker_folder / "control"),
        "store_processed": False,
    }
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "workers.pool:TaskPool"  # ends with a killed child
CELERY_TASK_DEFAULT_QUEUE = "default"
# Every task names its queue here; `gpu` is served by the GPU node alone. What beat sends has a
# queue of its own, so that it does not wait behind a long import, and expires when its next turn
# comes, so that a worker that was away does not find hundreds of turns. So have webhooks, which
# somebody waits for.
CELERY_TASK_ROUTES = {
    "workers.screen_round": {"queue": "default"},
    # Where checkpoints answer on a GPU node of their own: ANSWERS_QUEUE=gpu.
    "workers.make_answers": {"queue": env.str("ANSWERS_QUEUE", default="default")},
    "workers.rate_round": {"queue": "default"},
    "workers.repair_arena": {"queue": "repair"},
    "workers.run_import": {"queue": "default"},
    "workers.repair_imports": {"queue": "repair"},
    "workers.repair_annotation": {"queue": "repair"},
    "workers.deliver_webhook": {"queue": "hooks"},
    "workers.freeze_dataset": {"queue": "default"},
    "workers.repair_training": {"queue": "repair"},
    "workers.decide_gates": {"queue": "default"},
    "workers.gate_when_done": {"queue": "default"},
    "workers.advance_chains": {"queue": "default"},
    "workers.repair_chains": {"queue": "repair"},
    "workers.start_runs": {"queue": "gpu"},
    "workers.watch_runs": {"queue": "gpu"},
    "workers.annotation_statistics": {"queue": "default"},
    "workers.settle_ready": {"queue": "default"},
    "workers.run_export": {"queue": "default"},
    "workers.run_counterfactuals": {"queue": "default"},
}
CELERY_TASK_ALWAYS_EAGER = env.bool("CELERY_EAGER", default=False)
CELERY_TASK_EAGER_PROPAGATES = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE_FILENAME = str(PALATE_HOME / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    "repair-arena": {
        "task": "workers.repair_arena",
        "schedule": 20.0,
        "options": {"expires": 20.0},
    },
    "repair-annotation": {
        "task": "workers.repair_annotation",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "repair-training": {
        "task": "workers.repair_training",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "repair-chains": {
        "task": "workers.repair_chains",
        "schedule": 15.0,
        "options": {"expires": 15.0},
    },
    "watch-runs": {
        "task": "workers.watch_runs",
        "schedule": RUN_WATCH_SECONDS,
        "options": {"expires": RUN_WATCH_SECONDS},
    },
    "repair-imports": {
        "task": "workers.repair_imports",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
}

# Logs: one JSON object a line on standard error, without personal data.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "rename_fields": {"asctime": "at", "levelname": "level", "name": "logger"},
            "json_ensure_ascii": False,
            # Django hands its request to some lines: a path may hold the token of an invitation.
            "reserved_attrs": [*RESERVED_ATTRS, "request"],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        # axes prints user names and addresses; our own audit log holds what must be kept.
        "axes": {"level": "ERROR"},
        "kombu.connection": {"level": "ERROR"},  # misses a host name that a folder does not have
        "django.request": {"level": "CRITICAL"},  # our middleware logs these without ids
        "django.security.csrf": {"level": "CRITICAL"},  # with a path; `csrf_failure` says why
        "django.server": {"level": "ERROR"},
    },
}
