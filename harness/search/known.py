"""Hypothesis' example database, kept between runs, so that a known failure is tried first."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase
from pydantic import ValidationError

from harness.configuration import EngineConfig
from harness.errors import UsageError
from harness.folders import make_writable

REDIS = "redis://"
FAILED = b"sglang-toggle-harness/failed"
"""Key of the configurations whose shards have found something, as JSON."""


def open_database(where: str) -> ExampleDatabase:
    """A folder, or a Redis server by its URL, for many runners; raises UsageError where it can't be had."""
    if where.startswith(REDIS):
        return _redis(where)
    make_writable("example database", Path(where))
    return DirectoryBasedExampleDatabase(where)


def _redis(url: str) -> ExampleDatabase:
    try:
        import redis
        from hypothesis.extra.redis import RedisExampleDatabase
    except ImportError:
        raise UsageError(f"example database {url}: install the redis package") from None
    server = redis.Redis.from_url(url)
    try:
        server.ping()
    except redis.RedisError as error:
        raise UsageError(f"example database {url}: {error}") from None
    return RedisExampleDatabase(server)


class Of(ExampleDatabase):
    """What of a database belongs to one configuration, its patch included."""

    def __init__(self, database: ExampleDatabase, config: EngineConfig) -> None:
        self._database = database
        self._prefix = sha256(config.model_dump_json().encode()).digest()
        super().__init__()

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """All values of a key."""
        return self._database.fetch(self._prefix + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keep a value."""
        self._database.save(self._prefix + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forget a value."""
        self._database.delete(self._prefix + key, value)


def remember(database: ExampleDatabase, config: EngineConfig) -> None:
    """This configuration has failed: its shard comes first from now on."""
    database.save(FAILED, config.model_dump_json().encode())


def failed_before(database: ExampleDatabase, grid: Sequence[EngineConfig]) -> list[EngineConfig]:
    """Those of the grid that have failed, in the grid's order; entries that can't be read are dropped."""
    known = set()
    for value in list(database.fetch(FAILED)):
        try:
            known.add(EngineConfig.model_validate_json(value))
        except ValidationError:
            database.delete(FAILED, value)
    return [config for config in grid if config in known]


def forget(database: ExampleDatabase, config: EngineConfig) -> None:
    """This configuration passes now."""
    database.delete(FAILED, config.model_dump_json().encode())
