"""The recipes in client/README.md, each run with the library that it is for."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import alembic
import pytest

from tests import kinds
from tests.daemon.test_listeners import connects
from tests.documents import ROOT, text
from tests.rig import PATIENCE, Daemon, connected, until
from tests.system.test_postgresql import Server
from tests.system.test_postgresql import server as server
from uuidd.core.ids import uuids

RECIPES = ROOT / "client" / "recipes"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon("--worker", "5") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def environment(daemon: Daemon) -> dict[str, str]:
    """The environment of programs that have no other way to make ids than this daemon."""
    known = {"UUIDD_SOCKET": str(daemon.socket), "UUIDD_FALLBACK": "0"}
    return {**os.environ, **known, "PYTHONPATH": str(RECIPES)}


def run(environment: dict[str, str], *words: str, folder: Path = RECIPES) -> str:
    """Run Python, with warnings as errors; return all that it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        # The libraries take long to import on a busy machine.
        timeout=3 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def for_sqlalchemy(server: Server) -> str:
    return server.url.replace("postgresql:", "postgresql+psycopg:")


def test_the_document_names_each_recipe() -> None:
    linked = set(re.findall(r"\]\(recipes/([\w.]+)\)", text("client/README.md")))
    assert linked == {path.name for path in RECIPES.iterdir() if path.is_file()}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_sqlalchemy(environment: dict[str, str], server: Server, database: str) -> None:
    address = "sqlite://" if database == "sqlite" else for_sqlalchemy(server)
    told = run({**environment, "DATABASE_URL": address}, "with_sqlalchemy.py")
    rows = [line.split() for line in told.splitlines()]
    assert len(rows) == 3
    assert rows == sorted(rows) == sorted(rows, key=lambda row: kinds.number("ulid", row[1]))
    if database == "postgresql":
        columns = "SELECT udt_name FROM information_schema.columns WHERE table_name = 'orders'"
        assert server.psql(f"{columns};") == [["uuid"], ["uuid"]]
        server.psql("DROP TABLE orders;")


ALEMBIC = """
from alembic.config import main
main(["revision", "--autogenerate", "-m", "orders"])
main(["upgrade", "head"])
main(["check"])
"""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_alembic(
    environment: dict[str, str], server: Server, tmp_path: Path, database: str
) -> None:
    """A migration that was made by itself runs, and then there is nothing to change."""
    address = f"sqlite:///{tmp_path}/db" if database == "sqlite" else for_sqlalchemy(server)
    (tmp_path / "versions").mkdir()
    settings = f"script_location = {tmp_path}\npath_separator = os\nsqlalchemy.url = {address}\n"
    # A "%" begins a reference to another setting.
    (tmp_path / "alembic.ini").write_text(f"[alembic]\n{settings.replace('%', '%%')}")
    shutil.copy(RECIPES / "alembic_env.py", tmp_path / "env.py")
    template = Path(alembic.__file__).parent / "templates" / "generic" / "script.py.mako"
    shutil.copy(template, tmp_path)
    told = run(environment, "-c", ALEMBIC, folder=tmp_path)
    assert "No new upgrade operations detected" in told
    [made] = (tmp_path / "versions").glob("*.py")
    assert "import uuidd_client.sqlalchemy\n" in made.read_text()
    assert "uuidd_client.sqlalchemy.Ulid()" in made.read_text()
    if database == "postgresql":
        server.psql("DROP TABLE orders, alembic_version;")


DJANGO = """
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["shop"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
call_command("makemigrations", "shop", verbosity=0)
call_command("migrate", verbosity=0)
call_command("makemigrations", "shop", check=True, verbosity=0)
from shop.models import Order
made = [Order.objects.create() for _ in range(3)]
assert list(Order.objects.all()) == made
assert len({order.number for order in made}) == 3
print([type(order.id).__name__ for order in Order.objects.all()])
"""


def test_django(environment: dict[str, str], tmp_path: Path) -> None:
    app = tmp_path / "shop"
    (app / "migrations").mkdir(parents=True)
    (app / "__init__.py").touch()
    (app / "migrations" / "__init__.py").touch()
    shutil.copy(RECIPES / "django_models.py", app / "models.py")
    assert run(environment, "-c", DJANGO, folder=tmp_path) == "['UUID', 'UUID', 'UUID']\n"
    migration = (app / "migrations" / "0001_initial.py").read_text()
    assert "default=uuidd_client.uuid7" in migration
    assert "default=uuidd_client.ulid" in migration


FASTAPI = """
import warnings
with warnings.catch_warnings():
    # Of the libraries, on each other.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient
    from with_fastapi import app
    client = TestClient(app)
    made = client.post("/orders", params={"item": "tea"}).json()
    assert client.get("/orders/" + made["number"].lower()).json() == made
    assert client.get("/orders/01FWHE4YDG001MR2KR543M8B4S").status_code == 404
    refused = client.get("/orders/none")
    assert refused.status_code == 422, refused.text
    assert "'none' is not a ULID" in refused.text
    assert client.get("/health").json()["blocks"] > 0
    order = client.get("/openapi.json").json()["components"]["schemas"]["Order"]
    import json
    print(json.dumps([made, order["properties"]]))
"""


def test_fastapi(environment: dict[str, str]) -> None:
    made, described = json.loads(run(environment, "-c", FASTAPI))
    assert uuids.from_text(made["id"]) >> 76 & 15 == 7
    assert isinstance(made["batch"], str)
    assert int(made["batch"]) >> 12 & 1023 == 5
    assert described["number"]["pattern"].startswith("^[0-7]")
    assert (described["batch"]["type"], described["id"]["format"]) == ("string", "uuid7")


FASTAPI_ALONE = """
import warnings
with warnings.catch_warnings():
    # Of the libraries, on each other, and of the fallback.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient
    from with_fastapi import app
    client = TestClient(app)
    refused = client.post("/orders", params={"item": "tea"})
    print(refused.status_code, refused.json()["detail"])
    assert client.get("/health").json()["last_error"] == refused.json()["detail"]
"""


def test_fastapi_without_a_daemon(environment: dict[str, str], tmp_path: Path) -> None:
    """A Snowflake that cannot be made is a status 503 that says why, and so does the health."""
    alone = {**environment, "UUIDD_SOCKET": str(tmp_path / "none")}
    assert run(alone, "-c", FASTAPI_ALONE).startswith("503 no answer from uuidd at ")


FASTAPI_OF_A_DATABASE = """
import os, signal, sys, warnings
with warnings.catch_warnings():
    # Of the libraries, on each other.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient
    from with_fastapi_and_sqlalchemy import app
    with TestClient(app) as client:
        made = client.post("/orders", params={"item": "tea"}).json()
        assert client.get("/orders/" + made["id"]).json() == made
        assert client.get("/orders/5").status_code == 404
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
        answers = []
        # Until the block is used up, or too old.
        while not answers or answers[-1].status_code == 200:
            answers.append(client.post("/orders", params={"item": "tea"}))
        assert client.get("/orders/" + made["id"]).json() == made
        print(answers[-1].status_code, answers[-1].json()["reason"])
"""


def test_fastapi_with_a_database_and_a_daemon_that_hangs(
    environment: dict[str, str], server: Server
) -> None:
    """Each order whose id cannot be made is a status 503, and others are read meanwhile."""
    with Daemon("--worker=5") as daemon:
        known = {"UUIDD_SOCKET": str(daemon.socket), "UUIDD_TIMEOUT": "2"}
        known["DATABASE_URL"] = for_sqlalchemy(server)
        printed = run({**environment, **known}, "-c", FASTAPI_OF_A_DATABASE, str(daemon.pid))
    assert printed.split() == ["503", "silent"]
    server.psql("DROP TABLE orders;")


def test_psycopg(environment: dict[str, str], server: Server) -> None:
    """All rows of today are found by the lowest id of a time."""
    assert run({**environment, "DATABASE_URL": server.url}, "with_psycopg.py") == "1000\n"
    server.psql("DROP TABLE readings;")


@pytest.mark.parametrize(
    ("recipe", "printed"),
    [
        # As Celery's processes are forked, after the first id: by billiard.
        ("prefork.py", "4001 4001\n"),
        # Ids alone, in a list, and of an endless iterator.
        ("with_asyncio.py", "11000 11000\n"),
        ("with_trio.py", "11000 11000\n"),
    ],
)
def test_each_id_differs(environment: dict[str, str], recipe: str, printed: str) -> None:
    """A program prints how many it made, and how many of them differ."""
    assert run(environment, recipe) == printed


@pytest.mark.parametrize("workers", ["sync", "gevent"])
def test_gunicorn(environment: dict[str, str], place: Path, workers: str) -> None:
    """Its workers, which share what was loaded before they were forked, repeat no id."""
    at = place / "web"
    words = ["-m", "gunicorn", "-k", workers, "--bind", f"unix:{at}", "--no-control-socket"]
    log = place / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *words, "wsgi_app"], env=environment, cwd=RECIPES, stderr=errors
        )
    try:
        answers: list[list[str]] = []

        def by_both() -> bool:
            answers.append(_answer(at).split())
            return len({pid for pid, _ in answers}) == 2 and len(answers) > 50

        until(lambda: connects(at), instead=log.read_text)
        until(by_both, instead=log.read_text)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    made = [id for _, id in answers]
    assert len({*made}) == len(made)


def _answer(at: Path) -> str:
    with connected(at) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: sock.recv(4096), b"")).partition(b"\r\n\r\n")[2].decode()


def of_logging(line: str) -> tuple[str, str]:
    """Return the id in a line, and what it says."""
    id, said = line.split(" ", 1)
    return id, said


def of_structlog(line: str) -> tuple[str, str]:
    """Return the same of a line that is JSON."""
    told = json.loads(line)
    return told["request_id"], told["request"]


@pytest.mark.parametrize(
    ("recipe", "read", "expected"),
    [
        ("with_logging.py", of_logging, ("begin first", "end first", "begin second", "end second")),
        ("with_structlog.py", of_structlog, ("first", "first", "second", "second")),
    ],
)
def test_the_lines_of_a_request_have_one_id_and_another_request_has_a_later_one(
    environment: dict[str, str],
    recipe: str,
    read: Callable[[str], tuple[str, str]],
    expected: tuple[str, ...],
) -> None:
    ids, said = zip(*map(read, run(environment, recipe).splitlines()), strict=True)
    assert said == expected
    first, same, second, same_again = (kinds.number("ulid", id) for id in ids)
    assert first == same < second == same_again


def test_opentelemetry(environment: dict[str, str]) -> None:
    """The later trace has the higher id, passed in code or named in the environment."""
    first, second = run(environment, "with_opentelemetry.py").split()
    assert len(first) == len(second) == 32
    assert first < second
