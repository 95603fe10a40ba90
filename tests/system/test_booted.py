"""The service on a booted Debian, seen through its own systemctl and journalctl."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import msgpack
import pytest

from tests.judge import assert_no_id_twice
from tests.rig import until
from tests.system.booted import UUIDCTL, UUIDD, Booted, LibuuidCaller, callers
from tests.tools import need, output

pytestmark = pytest.mark.thorough

THEIRS = "/usr/sbin/uuidd"


def uuid_of(booted: Booted, *command: str) -> UUID:
    return UUID(booted.run(*command).strip())


def test_it_takes_util_linuxs_place_and_gives_it_back(booted: Booted, tmp_path: Path) -> None:
    """All the while callers of libuuid get ids, none twice, and safe ones while a daemon serves."""
    with LibuuidCaller(booted, tmp_path) as caller:
        assert THEIRS in booted.shown("ExecStart")
        served = [caller.some()]
        booted.take_over()
        assert UUIDD in booted.shown("ExecStart")
        node = int(booted.status()["node"], 16)
        served.append(caller.some())
        booted.take_over("--undo")
        served.append(caller.some())
        assert THEIRS in booted.shown("ExecStart")
        assert booted.shown("ActiveState") == "active"
    drawn = caller.drawn()
    assert_no_id_twice([[one.id for one in drawn]])
    phases = [
        [one for one in drawn if begin < one.before and one.after < end] for begin, end in served
    ]
    assert all(one.safe for phase in phases for one in phase)
    # A new thread sends a new request; what an old one had left may still be the other daemon's.
    theirs, ours, theirs_again = ({one.id.node == node for one in phase} for phase in phases)
    assert theirs == {False}
    assert True in ours
    assert False in theirs_again


@pytest.mark.parametrize("command", [("uuidgen", "-t"), (UUIDCTL, "new")], ids=str)
def test_a_program_inside_gets_ids_of_the_services_node(
    service: Booted, command: tuple[str, ...]
) -> None:
    assert uuid_of(service, *command).node == int(service.status()["node"], 16)


def test_systemd_shows_how_the_service_does(service: Booted) -> None:
    said = service.run("systemctl", "status", "--no-pager", "uuidd.service")
    assert 'Status: "Serving 0 connections' in said
    assert f"Main PID: {service.pid} (uuidd)" in said
    shown = [service.shown(name) for name in ("Type", "WatchdogUSec", "ActiveState")]
    assert shown == ["notify", "10s", "active"]
    assert service.status()["pid"] == service.pid
    assert service.run("systemctl", "is-enabled", "uuidd.socket") == "enabled\n"
    assert service.shown("ActiveState", "uuidd.socket") == "active"


def test_it_is_started_once_it_serves_and_not_before(service: Booted) -> None:
    since = service.now()
    service.restart()
    told = service.logged(since, "started: version=", "Started uuidd.service").splitlines()
    ready = next(number for number, line in enumerate(told) if "Started uuidd.service" in line)
    assert any(line.startswith("started: version=") for line in told[:ready])


def test_the_process_has_no_privilege(service: Booted) -> None:
    lines = service.run("cat", f"/proc/{service.pid}/status").splitlines()
    found = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    uid = service.run("id", "-u", "uuidd").strip()
    assert uid != "0"
    assert found["Uid"] == [uid] * 4
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(found[name][0], 16) == 0
    assert (found["NoNewPrivs"], found["Seccomp"]) == (["1"], ["2"])


def test_lanes_are_leased_from_within_the_sandbox(service: Booted) -> None:
    """The service may make sealed memory, and pass its descriptor."""
    assert service.status()["leases"]["page"]
    with service.connect() as connection:
        connection.sock.sendall(msgpack.packb([0, 1, "lease", []]))
        data, passed, *_ = socket.recv_fds(connection.sock, 65536, 4)
        for fd in passed:
            os.close(fd)
        _, _, error, _ = msgpack.unpackb(data)
        assert error is None or error.startswith("no_lease: no lease before UTC has passed")
        # The page comes with the first reply, whatever that is.
        assert len(passed) == 1


def test_the_signals_of_a_clone_are_seen_from_within_the_sandbox(service: Booted) -> None:
    """A file stands for the vmclock device. Where there is none, nothing warns of that."""
    since = service.now()
    service.restart()
    found = service.status()["clones"]["signals"]
    assert (found["vmclock"], found["clock"]) == ("no /dev/vmclock0", "")
    assert found["vmgenid"] in ("no /dev/kmsg", "no vmgenid device")
    assert service.journal(since, "--priority=warning") == ""
    service.run("sh", "-euc", "printf VCLK >/dev/vmclock0 && truncate -s 4096 /dev/vmclock0")
    try:
        service.restart()
        assert service.status()["clones"]["signals"]["vmclock"] == ""
    finally:
        service.run("rm", "/dev/vmclock0")
        service.restart()


def test_a_restart_loses_no_call(service: Booted, tmp_path: Path) -> None:
    since = service.now()
    with callers(service, tmp_path) as draw_on:
        service.restart()
        draw_on()
    service.logged(since, "stopping: signal=SIGTERM", "stopped: state saved", "started: version=")
    # The callers may have gone on with their leases, which a quick restart finds not to be over.
    left = (
        "the clock sequence was changed, because the last run did not stop cleanly, or left leases"
    )
    warnings = service.journal(since, "--priority=warning").splitlines()
    assert [line for line in warnings if not line.startswith(left)] == []


def test_restarts_in_quick_succession_are_allowed(service: Booted) -> None:
    """Not even the socket is locked out, as systemd would a unit after five starts."""
    for _ in range(6):
        service.run("systemctl", "restart", "uuidd.socket", "uuidd.service")
    assert service.status()["pid"] == service.pid


def test_a_killed_daemon_is_started_again(service: Booted, tmp_path: Path) -> None:
    since, pid = service.now(), service.pid
    with callers(service, tmp_path) as draw_on:
        service.run("systemctl", "kill", "--signal=KILL", "uuidd.service")
        until(lambda: service.pid not in (0, pid))
        draw_on()
    service.logged(since, "code=killed, status=9/KILL", "started: version=")
    assert "Failed with result 'signal'" in service.logged(since, "Failed with", level="warning")


def test_a_killed_daemon_is_not_left_for_the_next_call(service: Booted) -> None:
    """It is started again before a request comes, so that no caller waits for its start."""
    pid = service.pid
    service.run("systemctl", "kill", "--signal=KILL", "uuidd.service")
    until(lambda: service.pid not in (0, pid))
    until(lambda: service.shown("ActiveState") == "active")
    assert service.status()["pid"] == service.pid


def test_a_hung_daemon_is_ended_by_the_watchdog(service: Booted, tmp_path: Path) -> None:
    service.drop_in("WatchdogSec=2")
    service.restart()
    since, pid = service.now(), service.pid
    with callers(service, tmp_path) as draw_on:
        service.run("systemctl", "kill", "--signal=STOP", "uuidd.service")
        until(lambda: service.pid not in (0, pid))
        draw_on()
    told = service.logged(since, "Watchdog timeout", level="warning")
    assert "Failed with result 'watchdog'" in told


def test_a_stopped_service_is_started_by_the_next_call(service: Booted, tmp_path: Path) -> None:
    since = service.now()
    with callers(service, tmp_path) as draw_on:
        service.run("systemctl", "stop", "uuidd.service")
        draw_on()
    service.logged(since, "stopped: state saved", "Stopped uuidd.service", "started: version=")
    assert service.journal(since, "--priority=warning") == ""


def test_a_call_made_while_it_starts_is_answered(service: Booted) -> None:
    """A service that takes long to start keeps its callers waiting, and turns none away."""
    go = service.path("/root/go")
    service.drop_in("ExecStartPre=+/bin/sh -c 'until [ -e /root/go ]; do sleep 0.1; done'")
    service.run("systemctl", "stop", "uuidd.service")
    service.run("systemctl", "start", "--no-block", "uuidd.service")
    until(lambda: service.shown("ActiveState") == "activating")
    with service.connect() as connection:
        connection.sock.sendall(msgpack.packb([0, 1, "make", ["v1", 3]]))
        assert service.shown("ActiveState") == "activating"
        go.touch()
        _, _, error, made = connection.read()
    go.unlink()
    assert (error, len(made)) == (None, 3)
    until(lambda: service.shown("ActiveState") == "active")


def fails_to_start(booted: Booted, options: str) -> str:
    """Start the service with options that it refuses; return the line that shows why."""
    booted.options(options)
    booted.run("systemctl", "restart", "--no-block", "uuidd.service")

    def line() -> str:
        words = ("systemctl", "status", "--no-pager", "--full", "uuidd.service")
        said = booted.tried(*words).stdout
        # What it says comes before its end, and while it waits to be tried again.
        lines = [line for line in said.splitlines() if " uuidd[" in line]
        return lines[-1] if "Active: activating" in said and lines else ""

    return until(line)


BAD = "--max-pipelined none"


def test_a_bad_option_fails_the_start_until_it_is_mended(service: Booted) -> None:
    said = fails_to_start(service, BAD)
    assert "argument --max-pipelined: 'none' is not a whole number" in said
    assert service.shown("ActiveState", "uuidd.socket") == "active"
    with service.connect() as connection:
        service.options("")
        assert len(connection.call("make", "v1", 2)) == 2
    until(lambda: service.shown("ActiveState") == "active")


def test_a_state_folder_of_anothers_is_refused(service: Booted) -> None:
    service.run("install", "--directory", "--owner=nobody", "/var/lib/elsewhere")
    said = fails_to_start(service, "--state /var/lib/elsewhere")
    assert "the state folder /var/lib/elsewhere belongs to uid 65534, and this is uid" in said


def test_a_restart_of_a_service_that_cannot_start_fails(service: Booted) -> None:
    """The command fails: systemd does not go on trying before it answers."""
    service.options(BAD)
    assert service.tried("systemctl", "restart", "uuidd.service").returncode == 1


@pytest.mark.parametrize("fault", ["options", "installation"])
def test_a_service_that_cannot_start_is_tried_every_other_second(
    service: Booted, fault: str
) -> None:
    """At most so often, even while a caller waits, and if not even uuidd's error can be told."""
    if fault == "options":
        service.options(BAD)
    else:
        # As after an upgrade that failed half-way.
        broken = service.path("/var/lib/broken")
        broken.mkdir(exist_ok=True)
        (broken / "trio.py").write_text("raise ImportError('half of it is missing')\n")
        service.drop_in("Environment=PYTHONPATH=/var/lib/broken")
    since = service.now()
    service.run("systemctl", "restart", "--no-block", "uuidd.service")
    with service.connect():
        until(lambda: int(service.shown("NRestarts")) >= 2)
    lines = service.journal(since, "--output=short-unix").splitlines()
    tries = [float(line.split()[0]) for line in lines if "Starting uuidd.service" in line]
    assert min(later - one for one, later in itertools.pairwise(tries)) > 2


def test_systemd_gives_the_services_own_folder_back_to_it(service: Booted) -> None:
    node = service.status()["node"]
    service.run("systemctl", "stop", "uuidd.service")
    service.run("chown", "-R", "nobody:", "/var/lib/uuidd")
    service.run("systemctl", "start", "uuidd.service")
    assert service.run("stat", "--format=%U", "/var/lib/uuidd/state") == "uuidd\n"
    assert service.status()["node"] == node


MAC = "00:16:3e:5a:5b:5c"


@pytest.fixture
def interface(service: Booted) -> Iterator[None]:
    ip = [need("nsenter"), f"--net={service.path('/proc/1/ns/net')}", need("ip")]
    output(*ip, "link", "add", "test0", "address", MAC, "type", "veth")
    yield
    output(*ip, "link", "delete", "test0")


@pytest.mark.usefixtures("interface")
@pytest.mark.parametrize("node", ["mac", "mac:test0"])
def test_a_mac_is_found_from_within_the_sandbox(service: Booted, node: str) -> None:
    service.options(f"--node {node}")
    service.restart()
    made = uuid_of(service, "uuidgen", "-t")
    assert made.node == int(MAC.replace(":", ""), 16)


def test_the_service_notices_a_copied_state(service: Booted) -> None:
    """It is passed the product UUID, which only root can read; the host may have none."""
    assert "product-uuid:/sys/" in service.run("systemctl", "cat", "uuidd.service")
    uuid = service.path("/root/product-uuid")
    uuid.touch(0o600)
    nodes = []
    for product in ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "0e6cd2a9-4f86-4d49-9a0c-2a5c1a4b6f11"):
        uuid.write_text(f"{product}\n")
        service.drop_in("LoadCredential=product-uuid:/root/product-uuid")
        service.restart()
        nodes.append(service.status()["node"])
    assert nodes[0] != nodes[1]
    log = service.run(
        "journalctl", "--unit=uuidd.service", "--grep=another machine saved the state"
    )
    assert nodes[1] in log


def test_an_idle_service_ends_and_comes_back(service: Booted) -> None:
    service.options("-T 2")
    since = service.now()
    begin = time.monotonic()
    service.restart()
    until(lambda: service.shown("ActiveState") == "inactive")
    assert time.monotonic() - begin > 2
    service.logged(since, "stopping: no request for 2 s", "stopped: state saved")
    assert service.shown("Result") == "success"
    with service.connect() as connection:
        assert len(connection.call("make", "v7", 2)) == 2
    # It answers when it is ready, and systemd may hear of that a moment later.
    until(lambda: service.shown("ActiveState") == "active")
