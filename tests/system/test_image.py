"""The image of the Dockerfile, built and run; and the Kubernetes manifests that use it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import yaml

from tests.client.test_scrape import fetched
from tests.rig import Connection, until
from tests.system.image import PROJECT, SOCKETS, STATE, Image, Started, Volumes, end
from tests.tools import need, need_package, output, run
from uuidd.privileges import User, acting_as

pytestmark = pytest.mark.thorough

UID = 10001
CONSUMER = "10002:10002"

CAPABILITIES = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_RAW"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
"""What buildah leaves to root, at most."""

MANIFESTS = PROJECT / "systemd" / "kubernetes"
CONSUMER_HEADING = (
    '# An example of a pod that uses this daemon (remove the "# " from each line):\n#\n'
)


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    with Image() as image:
        yield image


@pytest.fixture
def daemon(image: Image, volumes: Volumes) -> Iterator[Started]:
    with Started(volumes, image.run(volumes, *image.command)) as daemon:
        yield daemon


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    return Volumes(tmp_path, UID)


def test_hadolint_has_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where pip puts it, if the venv of the tests is not on the path.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    done = run(need("hadolint"), PROJECT / "Dockerfile")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_image_says_how_it_is_run(image: Image) -> None:
    """An unprivileged user by number, two volumes, no shell between a signal and the daemon."""
    assert image.config["User"] == f"{UID}:{UID}"
    assert set(image.config["Volumes"]) == {SOCKETS, STATE}
    assert image.config["StopSignal"] == "SIGTERM"
    assert image.command == ["uuidd", "-F", "-P"]
    assert image.config["Healthcheck"]["Test"] == ["CMD", "uuidctl", "status"]


@pytest.mark.parametrize(
    "pattern",
    [
        *("opt/uuidd/bin/pip", "opt/uuidd/lib/python*/site-packages/pip", "src", "tools", "wheels"),
        *("root/.cache", "var/lib/apt/lists/*Packages*", "tmp/*"),
        *("usr/bin/cc", "usr/bin/gcc", "usr/bin/ld", "usr/include/python*"),
    ],
)
def test_the_image_holds_nothing_of_its_building(image: Image, pattern: str) -> None:
    assert list(image.root.glob(pattern)) == []


def test_the_image_has_the_extension(image: Image, volumes: Volumes) -> None:
    script = "import uuidd_client; print(uuidd_client.implementation)"
    assert output(*image.run(volumes, "/opt/uuidd/bin/python", "-c", script)) == "c\n"


def test_the_image_has_its_bytecode(image: Image) -> None:
    """A user that cannot write there need not compile at each start."""
    [packages] = image.root.glob("opt/uuidd/lib/python*/site-packages")
    for package in ("uuidd", "uuidd_client", "trio"):
        sources = {path.stem for path in (packages / package).glob("*.py")}
        compiled = {path.name.split(".")[0] for path in packages.glob(f"{package}/__pycache__/*")}
        assert sources == compiled


@pytest.mark.parametrize("path", [SOCKETS, STATE])
def test_volumes_are_made_for_the_daemons_user(image: Image, path: str) -> None:
    """A new named volume takes its owner from the image's folder."""
    found = (image.root / path.lstrip("/")).stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (UID, UID, 0o755)


def test_without_a_daemon_the_container_is_not_healthy(image: Image, volumes: Volumes) -> None:
    assert run(*image.run(volumes, *image.config["Healthcheck"]["Test"][1:])).returncode != 0


@pytest.mark.usefixtures("daemon")
def test_readiness_is_whether_all_kinds_are_served(image: Image, volumes: Volumes) -> None:
    alive = image.run(volumes, *image.config["Healthcheck"]["Test"][1:])
    ready = image.run(volumes, "uuidctl", "status", "--check")
    assert run(*ready).returncode == 0
    # A folder in the temporary file's place: every save fails, as on a full disk.
    (volumes.state / "state.new").mkdir()
    client = volumes.client()
    until(lambda: client.uuid1().bytes and client.status()["volatile"])
    done = run(*ready)
    assert (done.returncode, "saves of the state fail" in done.stdout) == (2, True)
    assert run(*alive).returncode == 0
    (volumes.state / "state.new").rmdir()
    until(lambda: not client.status()["saves"]["failing"])
    assert run(*ready).returncode == 0


@pytest.mark.parametrize(("uid", "most"), [(UID, 16), (10002, 15)], ids=["its own", "another"])
def test_the_container_is_healthy_when_a_user_has_all_connections(
    image: Image, volumes: Volumes, monkeypatch: pytest.MonkeyPatch, uid: int, most: int
) -> None:
    # That user need not see the folders above.
    monkeypatch.chdir(volumes.sockets)
    limited = image.run(volumes, *image.command, "--max-connections=16")
    with Started(volumes, limited), contextlib.ExitStack() as connections:
        with acting_as(User("any", uid, uid)):
            for _ in range(most):
                connections.enter_context(Connection(Path("request"))).call("status")
        done = run(*image.run(volumes, *image.config["Healthcheck"]["Test"][1:]))
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("daemon")
def test_metrics_come_from_the_image(image: Image, volumes: Volumes) -> None:
    done = run(*image.run(volumes, "uuidctl", "metrics"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "uuidd_saves_failing 0.0" in done.stdout


@pytest.mark.usefixtures("daemon")
def test_metrics_are_served_from_the_image(image: Image, volumes: Volumes) -> None:
    """As the daemon set's container does, but at a free port of this host."""
    [*words, _] = daemon_set()["containers"][1]["command"]
    served = image.run(volumes, *words, "127.0.0.1:0", read_only_sockets=True)
    server = subprocess.Popen(served, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().removeprefix("serving ").strip()
        assert "\nuuidd_up 1\n" in fetched(url)
    finally:
        end(server)
        server.communicate()


@pytest.mark.parametrize(
    "url", ["etcd://h/uuidd", "zk://h/uuidd", "postgresql://u@h/db/uuidd"], ids=str
)
def test_each_engine_of_a_fleet_can_be_asked_from_the_image(
    image: Image, volumes: Volumes, url: str
) -> None:
    """Its library is there; a start does not wait for the engine itself."""
    done = run(*image.run(volumes, *image.command, "--check", "--worker", url))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("daemon")
def test_another_user_is_served_through_a_read_only_mount(image: Image, volumes: Volumes) -> None:
    """As the app beside a sidecar, which can connect, and not replace the socket."""
    script = "uuidctl new -k v1 -n 2 && ! rm -f /run/uuidd/request && ! touch /run/uuidd/x"
    options = ["--user", CONSUMER]
    app = image.run(volumes, "sh", "-c", script, options=options, read_only_sockets=True)
    done = run(*app)
    assert done.returncode == 0, done.stderr
    node = volumes.client().status()["node"].removeprefix("0x")
    assert [line[-12:] for line in done.stdout.split()] == [node, node]


def test_it_stops_within_a_second_as_pid_1(image: Image, volumes: Volumes) -> None:
    """SIGTERM ends it: state saved, socket gone, exit status 0. The root may be read-only.

    The kernel drops signals to a pid 1 that has no handler.
    """
    with Started(volumes, image.as_pid_1(volumes, *image.command)) as daemon:
        told = Path(f"/proc/{daemon.pid}/status").read_text()
        [pids] = [line.split()[1:] for line in told.splitlines() if line.startswith("NSpid:")]
        assert pids[-1] == "1"
        volumes.client().uuid1()
        assert daemon.stop(1.0) == 0
        assert not volumes.socket.exists()
    assert "INFO: stopped: state saved" in daemon.log().splitlines()[-1]


def test_the_state_outlives_the_container(image: Image, volumes: Volumes) -> None:
    nodes, ids = set(), []
    for _ in range(2):
        with Started(volumes, image.run(volumes, *image.command)) as daemon:
            client = volumes.client()
            nodes.add(client.status()["node"])
            ids += [*client.make("v1", 5000), *client.make("v7", 5000)]
            assert daemon.stop() == 0
    assert len(nodes) == 1
    assert len(set(ids)) == 20000


@pytest.mark.parametrize(("node", "worker"), [("node-a", 12), ("node-b", None)])
def test_the_daemon_set_gives_a_node_its_worker(
    image: Image, volumes: Volumes, tmp_path: Path, node: str, worker: int | None
) -> None:
    """By its name in the ConfigMap; one that is not named there has none."""
    workers = tmp_path / "workers"
    workers.mkdir()
    (workers / "node-a").write_text("12")
    container, _ = daemon_set()["containers"]
    options = ["--env", f"NODE_NAME={node}", "--volume", f"{workers}:/etc/uuidd/workers:ro"]
    with Started(volumes, image.run(volumes, *container["command"], options=options)) as daemon:
        assert volumes.client().status()["steady"]["worker"] == worker
        assert daemon.stop(1.0) == 0


def test_the_daemon_set_gives_the_nodes_folders_to_its_user(image: Image, tmp_path: Path) -> None:
    """Folders made as root's, by a root that can do nothing else; and once more the next time."""
    volumes = Volumes(tmp_path, 0)
    (volumes.state / "state").touch()
    [init] = daemon_set()["initContainers"]
    kept = init["securityContext"]["capabilities"]["add"]
    dropped = ",".join(f"CAP_{name}" for name in CAPABILITIES.difference(kept))
    options = ["--user", "0:0", "--cap-drop", dropped]
    for _ in range(2):
        done = run(*image.run(volumes, *init["command"], options=options))
        assert done.returncode == 0, done.stderr
        for path in (volumes.sockets, volumes.state, volumes.state / "state"):
            assert (path.stat().st_uid, path.stat().st_gid) == (UID, UID)


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def daemon_set() -> dict[str, Any]:
    _, found = manifests("daemonset.yaml")
    pod: dict[str, Any] = found["spec"]["template"]["spec"]
    return pod


def sidecar() -> dict[str, Any]:
    [found] = manifests("sidecar.yaml")
    pod: dict[str, Any] = found["spec"]
    return pod


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def sources(pod: dict[str, Any]) -> dict[str, Any]:
    return {volume.pop("name"): volume for volume in pod["volumes"]}


CHECK = ["sh", "-c", "uuidctl status --check || [ $? -eq 1 ]"]
"""Whether all is served: a warning keeps nobody from any ids."""


PROBES: dict[Callable[[], dict[str, Any]] | None, set[str]] = {
    daemon_set: {"startupProbe", "livenessProbe", "readinessProbe"},
    # Its app makes ids by itself while the daemon does not answer.
    sidecar: {"startupProbe", "livenessProbe"},
    None: set(),
}
"""Which probes a daemon has, and what is none."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["daemonset.yaml", "sidecar.yaml"])
@pytest.mark.parametrize("version", ["1.29", "1.35"])
def test_the_schemas_of_kubernetes_have_nothing_to_say(name: str, version: str) -> None:
    """Of the first with native sidecars, and of a new one. An unknown field is an error."""
    kubernetes_validate = need_package("kubernetes_validate")
    for manifest in [*manifests(name), consumer()]:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("pod", [daemon_set, sidecar])
def test_a_container_has_no_more_than_the_standard_restricted_gives(
    pod: Callable[[], dict[str, Any]],
) -> None:
    """A daemon is alive when it answers, and ready when it serves all."""
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod()["containers"] + pod().get("initContainers", []):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert {"cpu", "memory"} == set(container["resources"]["requests"])
        if container["name"] == "folders":
            assert context["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
        else:
            assert (context["runAsNonRoot"], context["runAsUser"] > 0) == (True, True)
            assert context["capabilities"] == {"drop": ["ALL"]}
        probes = {name: probe for name, probe in container.items() if name.endswith("Probe")}
        assert probes.keys() == PROBES[pod if container["name"] == "uuidd" else None]
        for name, probe in probes.items():
            command = CHECK if name == "readinessProbe" else ["uuidctl", "status"]
            assert (probe["exec"]["command"], probe["timeoutSeconds"]) == (command, 5)


def test_the_sidecar_shares_its_socket_and_nothing_else() -> None:
    pod = sidecar()
    [uuidd], [app] = pod["initContainers"], pod["containers"]
    assert uuidd["restartPolicy"] == "Always"
    assert mounts(uuidd) == {"socket": SOCKETS, "state": STATE}
    assert mounts(app) == {"socket": SOCKETS}
    assert app["volumeMounts"][0]["readOnly"] is True
    assert sources(pod) == {"socket": {"emptyDir": ANY}, "state": {"emptyDir": ANY}}
    assert sources(sidecar())["socket"]["emptyDir"]["medium"] == "Memory"
    assert uuidd["securityContext"]["runAsUser"] == UID


def test_the_daemon_set_keeps_socket_and_state_on_the_node() -> None:
    pod = daemon_set()
    (uuidd, metrics), [folders] = pod["containers"], pod["initContainers"]
    found = sources(pod)
    assert mounts(metrics) == {"socket": SOCKETS}
    for volume, path in (("socket", SOCKETS), ("state", STATE)):
        assert found[volume] == {"hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        assert mounts(uuidd)[volume] == mounts(folders)[volume] == path
    assert mounts(uuidd).keys() == found.keys()
    assert (folders["command"][2], folders["image"]) == (f"{UID}:{UID}", uuidd["image"])
    workers, daemons = manifests("daemonset.yaml")
    labels = daemons["spec"]["template"]["metadata"]["labels"]
    assert daemons["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert found["workers"]["configMap"]["name"] == workers["metadata"]["name"]
    assert daemons["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"] == 0


def consumer() -> dict[str, Any]:
    """Return the pod that the daemon set's comment shows."""
    _, snippet = (MANIFESTS / "daemonset.yaml").read_text().split(CONSUMER_HEADING)
    # Its indentation is what is left.
    lines = [line.removeprefix("#").removeprefix(" ") for line in snippet.splitlines()]
    found: dict[str, Any] = yaml.safe_load("\n".join(lines))
    return found


def test_the_daemon_sets_consumer_finds_its_socket() -> None:
    pod = consumer()["spec"]
    [app] = pod["containers"]
    assert sources(pod)["uuidd"] == sources(daemon_set())["socket"]
    assert app["volumeMounts"] == [{"name": "uuidd", "mountPath": SOCKETS, "readOnly": True}]
