"""The URL of an engine, and the files of secrets: what is understood, and each refusal."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from uuidd.cli import main
from uuidd.fleet.address import Address, parse, place, secret
from uuidd.fleet.engines import check
from uuidd.refused import Refused

ZOOKEEPER = parse("zk://h1,[::1]:2182/uuidd/prod")


def test_a_url_names_hosts_and_a_namespace() -> None:
    """Ports that are left out are the engine's usual ones."""
    assert (ZOOKEEPER.engine, ZOOKEEPER.tls) == ("zookeeper", False)
    assert ZOOKEEPER.hosts == (("h1", 2181), ("::1", 2182))
    assert ZOOKEEPER.path == "/uuidd/prod"
    assert ZOOKEEPER.name == "ZooKeeper h1:2181,[::1]:2182"
    assert parse("etcds://h1/uuidd").tls
    assert parse("etcd://[::1]:2380,[fe80::1],h1/uuidd").hosts == (
        ("::1", 2380),
        ("fe80::1", 2379),
        ("h1", 2379),
    )


def test_a_url_of_a_database_may_name_a_namespace() -> None:
    found = parse("postgresql://fleet@h1:5433,h2/ids/prod?sslmode=verify-full")
    assert found.hosts == (("h1", 5433), ("h2", 5432))
    assert (found.user, found.database, found.path) == ("fleet", "ids", "prod")
    assert found.query == (("sslmode", "verify-full"),)
    assert parse("postgresql:///ids?host=/run/postgresql").path == "uuidd"


def test_a_url_of_a_folder_names_it() -> None:
    assert parse("folder:///srv/numbers").path == "/srv/numbers"


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("h1:2181/uuidd", "is neither a worker number nor a URL"),
        ("1024", "is neither a worker number nor a URL"),
        ("consul://h1/uuidd", "'consul' is no engine that is known; use zk, zks, etcd"),
        ("redis://h1/0", "Redis may forget what it has confirmed"),
        ("zk:///uuidd", "names no host; write zk://h1:2181/"),
        ("zk://h1", "names no namespace; write zk://.../uuidd/prod"),
        ("zk://h1,/uuidd", "'' is no host"),
        ("zk://h1:x/uuidd", "'h1:x' is no host, or host:port"),
        ("zk://h1:99999/uuidd", "99999 is no port"),
        ("zk://[::1/uuidd", "'[::1' is no host, or host:port"),
        ("zk://[h1]/uuidd", "'[h1]' is no host, or host:port"),
        ("zk://h1[::1]/uuidd", "'h1[::1]' is no host, or host:port"),
        ("zk://h1/uuidd/../x", "'..' in the path"),
        ("zk://h1/uuidd?x=1", "nothing can follow the path"),
        ("zk://h1..example/uuidd", "'h1..example'"),
        (f"etcd://{'h' * 64}/uuidd", "hhh"),
        ("etcd://h1/uuidd#x", "nothing can follow the path"),
        ("postgresql://h1/", "must name a database"),
        ("postgresql://h1/a/b/c", "must name a database, and may name a namespace"),
        ("folder://srv/numbers", "names no folder; write folder:///path/of/folder"),
        ("folder:///", "names no folder"),
        ("folder:///a%00b", "names no folder"),
        ("folder:///a%0Ab", "names no folder"),
        ("postgresql://h1/ids?\udcff=1", "has characters that cannot be printed; leave them out"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_line(url: str, error: str) -> None:
    """It names the value and the way out."""
    with pytest.raises(Refused) as caught:
        parse(url)
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "zk://me:hidden@h1/uuidd",
        "etcd://me:hid/den@h1/uuidd",
        "postgresql://me:hi@dden@h1/ids",
        "postgresql://me@h1/ids?sslmode=require&password=hidden",
        "postgresql://me@h1/ids?sslkey=/etc/key&sslpassword=hidden",
    ],
)
def test_a_password_in_the_url_is_refused_and_not_shown(url: str) -> None:
    """All users of the host can see the command line."""
    with pytest.raises(Refused, match="--worker-secret") as caught:
        parse(url)
    assert "hid" not in str(caught.value)
    assert "dden" not in str(caught.value)


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "uuidd.fleet.engines.zookeeper", raising=False)
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    monkeypatch.setattr(sys, "prefix", "/opt/my uuidd")
    assert main(["workers", "init", "zk://h1/uuidd"]) == 1
    assert capsys.readouterr().err == (
        "uuidd: zk:// needs the package kazoo (import of kazoo.client halted; None in sys.modules);"
        " install it with '/opt/my uuidd/bin/pip' install 'uuidd[zookeeper]'\n"
    )


def written(folder: Path, text: str = "hidden\n", mode: int = 0o600) -> Path:
    """Return a new file with this text."""
    path = folder / "file"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_secret_is_one_line_of_its_file(tmp_path: Path) -> None:
    """The end of the line is no part of it; a group may read it."""
    assert secret(only("secret")("zk://h1/u", written(tmp_path, mode=0o640))) == "hidden"
    assert secret(parse("zk://h1/u")) == ""


@pytest.mark.parametrize("text", ["", "\n", "two\nlines\n", "nul\0", "x" * 5000])
def test_a_file_without_one_line_holds_no_secret(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused, match=r"file does not hold one line of text$"):
        secret(only("secret")("zk://h1/u", written(tmp_path, text)))


Given = Callable[[str, Path], Address]


def only(*names: str, user: str = "") -> Given:
    """Return what gives one file as all of these, beside a URL."""
    return lambda url, path: replace(parse(url), user=user, files=dict.fromkeys(names, path))


OURS = only("secret", user="me")


@pytest.mark.parametrize(
    ("url", "given", "mode", "error"),
    [
        ("zk://h1/u", OURS, 0o604, "secret: all users can use {path} (mode 0604); chmod o= {path}"),
        ("zk://h1/u", OURS, 0o602, "secret: all users can use {path} (mode 0602); chmod o= {path}"),
        ("zks://h1/u", only("cert", "key"), 0o604, "key: all users can use {path} (mode 0604)"),
        # They would protect nothing.
        ("zk://h1/u", only("ca"), 0, "ca is for TLS, and zk:// has none; write zks:// for TLS"),
        ("zks://h1/u", only("cert"), 0, "cert and --worker-key must be given together"),
        ("zk://h1/u", only("secret"), 0, "secret needs the name of its user; add --worker-user"),
        # libpq would see nothing of what follows, such as the host.
        ("postgresql://u%00@h1/ids", only(user="u\0"), 0, "user: 'u\\x00' has characters that no"),
        ("folder:///u", only("secret"), 0, "secret is of no use with folder://; leave it out"),
        ("zks://h1/u", only("ca"), 0o600, "ca: {path} holds no certificates: "),
        ("zks://h1/u", only("cert", "key"), 0o600, "cert: {path} and --worker-key {path} are no"),
        # It would block a reader.
        ("zks://h1/u", only("ca"), stat.S_IFIFO, "ca: {path} is not a plain file"),
        ("zks://h1/u", only("ca"), None, "ca: {path} cannot be read: No such file"),
    ],
)
def test_a_file_that_is_of_no_use_is_refused(
    tmp_path: Path, url: str, given: Given, mode: int | None, error: str
) -> None:
    """The line names the option, the file, and the command that mends it."""
    path = tmp_path / "file"
    if mode == stat.S_IFIFO:
        os.mkfifo(path)
    elif mode is not None:
        written(tmp_path, "no certificate", mode)
    with pytest.raises(Refused) as caught:
        check(given(url, path))
    assert str(caught.value).startswith(f"--worker-{error.format(path=path)}")


def test_what_libpq_does_not_know_is_refused() -> None:
    """At the start, and not when the engine is asked."""
    check(parse("postgresql://h1/ids?sslmode=require"))
    with pytest.raises(Refused, match='invalid connection option "sslmood"'):
        check(parse("postgresql://h1/ids?sslmood=require"))


def test_a_name_without_a_slash_is_a_credential() -> None:
    assert place("--worker-secret", "db", "/run/credentials/x") == Path("/run/credentials/x/db")
    assert place("--worker-secret", "/etc/db", None) == Path("/etc/db")
    with pytest.raises(Refused, match=r"CREDENTIALS_DIRECTORY is not set; write \./db"):
        place("--worker-secret", "db", None)
