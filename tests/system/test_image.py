"""The image of the Dockerfile, built and run; and the Kubernetes manifests that use it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from tests.rig import until
from tests.system.image import PROJECT, SOCKETS, STATE, Image, Volumes, started
from tests.tools import need, output, run

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
    """The image, built once for all tests here."""
    with Image() as image:
        yield image


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    """Empty volumes of the image's user."""
    return Volumes(tmp_path, UID)


def test_hadolint_has_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Dockerfile keeps the rules of its trade."""
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


def test_the_image_holds_nothing_of_its_building(image: Image) -> None:
    """Neither pip nor sources, caches or lists of packages."""
    root = image.root
    for path in ("opt/uuidd/bin/pip", "src", "tools", "wheels", "root/.cache"):
        assert not (root / path).exists()
    assert not list(root.glob("opt/uuidd/lib/python*/site-packages/pip"))
    assert not list(root.glob("var/lib/apt/lists/*Packages*"))
    assert not list(root.glob("tmp/*"))


def test_the_image_has_the_extension_and_no_compiler(image: Image, volumes: Volumes) -> None:
    """It was compiled in a stage of its own."""
    script = "import uuidd_client; print(uuidd_client.implementation)"
    assert output(*image.run(volumes, "/opt/uuidd/bin/python", "-c", script)) == "c\n"
    assert not [name for name in ("cc", "gcc", "ld") if (image.root / "usr/bin" / name).exists()]
    assert not list(image.root.glob("usr/include/python*"))


def test_the_image_has_its_bytecode(image: Image) -> None:
    """A user that cannot write there need not compile at each start."""
    [packages] = image.root.glob("opt/uuidd/lib/python*/site-packages")
    for package in ("uuidd", "uuidd_client", "trio"):
        sources = {path.stem for path in (packages / package).glob("*.py")}
        compiled = {path.name.split(".")[0] for path in packages.glob(f"{package}/__pycache__/*")}
        assert sources == compiled


def test_volumes_are_made_for_the_daemons_user(image: Image) -> None:
    """A new named volume takes its owner from the image's folder."""
    for path in (SOCKETS, STATE):
        found = (image.root / path.lstrip("/")).stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (UID, UID, 0o755)


def test_health_is_whether_the_daemon_answers(image: Image, volumes: Volumes) -> None:
    """The health check's own command fails before the daemon runs, and succeeds while it does."""
    check = image.run(volumes, *image.config["Healthcheck"]["Test"][1:])
    assert run(*check).returncode != 0
    with started(volumes, image.run(volumes, *image.command)):
        assert run(*check).returncode == 0


def test_readiness_is_whether_all_kinds_are_served(image: Image, volumes: Volumes) -> None:
    """A daemon whose disk is full is alive and not ready, and ready again once there is room."""
    alive = image.run(volumes, *image.config["Healthcheck"]["Test"][1:])
    ready = image.run(volumes, "uuidctl", "status", "--check")
    with started(volumes, image.run(volumes, *image.command)):
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


def test_metrics_come_from_the_image(image: Image, volumes: Volumes) -> None:
    """The command of the image writes them."""
    with started(volumes, image.run(volumes, *image.command)):
        done = run(*image.run(volumes, "uuidctl", "status", "--prometheus"))
        assert (done.returncode, done.stderr) == (0, "")
        assert "uuidd_saves_failing 0.0" in done.stdout


@pytest.mark.parametrize(
    "url", ["etcd://h/uuidd", "zk://h/uuidd", "postgresql://u@h/db/uuidd"], ids=str
)
def test_each_engine_of_a_fleet_can_be_asked_from_the_image(
    image: Image, volumes: Volumes, url: str
) -> None:
    """Its library is there; a start does not wait for the engine itself."""
    done = run(*image.run(volumes, *image.command, "--check", "--worker", url))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_client_outside_is_served_through_the_volume(image: Image, volumes: Volumes) -> None:
    """The socket in the shared folder is all that a client needs."""
    with started(volumes, image.run(volumes, *image.command)):
        client = volumes.client()
        made = client.make("v7", 1000)
        node = client.uuid1().node
        assert len(set(made)) == 1000
        assert f"0x{node:012x}" == client.status()["node"]


def test_another_user_is_served_through_a_read_only_mount(image: Image, volumes: Volumes) -> None:
    """As the app beside a sidecar, which can connect, and not replace the socket."""
    with started(volumes, image.run(volumes, *image.command)):
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
    with started(volumes, image.as_pid_1(volumes, *image.command)) as daemon:
        told = Path(f"/proc/{daemon.pid}/status").read_text()
        [pids] = [line.split()[1:] for line in told.splitlines() if line.startswith("NSpid:")]
        assert pids[-1] == "1"
        volumes.client().uuid1()
        assert daemon.ends_on_sigterm_within(1.0)
        assert daemon.status() == 0
        assert not volumes.socket.exists()
    assert "INFO: stopped: state saved" in daemon.lines[-1]


def test_the_state_outlives_the_container(image: Image, volumes: Volumes) -> None:
    """Another one on the same volume goes on under the same node, and gives no id again."""
    nodes: set[str] = set()
    ids: list[UUID] = []
    for _ in range(2):
        with started(volumes, image.run(volumes, *image.command)) as daemon:
            client = volumes.client()
            nodes.add(client.status()["node"])
            ids += [*client.make("v1", 5000), *client.make("v7", 5000)]
            assert daemon.ends_on_sigterm_within(5.0)
            assert daemon.status() == 0
    assert len(nodes) == 1
    assert len(set(ids)) == 20000


def test_options_follow_the_entrypoint(image: Image, volumes: Volumes) -> None:
    """The sidecar's args, as its comment gives them, are the daemon's options."""
    with started(volumes, image.run(volumes, *image.command, "--worker", "7")):
        assert volumes.client().status()["steady"]["worker"] == 7


@pytest.mark.parametrize(("node", "worker"), [("node-a", 12), ("node-b", None)])
def test_the_daemon_set_gives_a_node_its_worker(
    image: Image, volumes: Volumes, tmp_path: Path, node: str, worker: int | None
) -> None:
    """By its name in the ConfigMap; one that is not named there has none."""
    workers = tmp_path / "workers"
    workers.mkdir()
    (workers / "node-a").write_text("12")
    [container] = daemon_set()["containers"]
    options = ["--env", f"NODE_NAME={node}", "--volume", f"{workers}:/etc/uuidd/workers:ro"]
    with started(volumes, image.run(volumes, *container["command"], options=options)) as daemon:
        assert volumes.client().status()["steady"]["worker"] == worker
        assert daemon.ends_on_sigterm_within(1.0)
        assert daemon.status() == 0


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
    """Return the documents of a manifest."""
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def daemon_set() -> dict[str, Any]:
    """Return the pod of the DaemonSet."""
    _, found = manifests("daemonset.yaml")
    assert (found["apiVersion"], found["kind"]) == ("apps/v1", "DaemonSet")
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert found["spec"]["selector"]["matchLabels"].items() <= labels.items()
    pod: dict[str, Any] = found["spec"]["template"]["spec"]
    return pod


def sidecar() -> dict[str, Any]:
    """Return the pod with the sidecar."""
    [found] = manifests("sidecar.yaml")
    assert (found["apiVersion"], found["kind"]) == ("v1", "Pod")
    pod: dict[str, Any] = found["spec"]
    return pod


def mounts(container: dict[str, Any]) -> dict[str, str]:
    """Return the paths of a container's mounts, by volume."""
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def sources(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the sources of a pod's volumes, by name."""
    return {
        volume["name"]: {key: value for key, value in volume.items() if key != "name"}
        for volume in pod["volumes"]
    }


def assert_confined(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """Check that a container has no more than the Pod Security Standard "restricted" gives."""
    context = container["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {"cpu", "memory"} == set(container["resources"]["requests"])


def assert_probed(container: dict[str, Any], *probes: str) -> None:
    """Check its probes: it is ready when all is served, and alive when it answers."""
    assert {name for name in container if name.endswith("Probe")} == set(probes)
    for probe in probes:
        command = ["uuidctl", "status"]
        if probe == "readinessProbe":
            # A warning keeps nobody from any ids.
            command = ["sh", "-c", "uuidctl status --check || [ $? -eq 1 ]"]
        assert container[probe]["exec"]["command"] == command
        assert container[probe]["timeoutSeconds"] == 5


def test_the_sidecar_shares_its_socket_and_nothing_else() -> None:
    """A native sidecar; the app has the folder of the socket, read-only, and not the state."""
    pod = sidecar()
    [uuidd], [app] = pod["initContainers"], pod["containers"]
    assert uuidd["restartPolicy"] == "Always"
    assert mounts(uuidd) == {"socket": SOCKETS, "state": STATE}
    assert mounts(app) == {"socket": SOCKETS}
    assert app["volumeMounts"][0]["readOnly"] is True
    assert set(sources(pod)) == {"socket", "state"}
    assert sources(pod)["socket"]["emptyDir"]["medium"] == "Memory"
    assert set(sources(pod)["state"]) == {"emptyDir"}
    assert (uuidd["securityContext"]["runAsUser"], uuidd["securityContext"]["runAsGroup"]) == (
        UID,
        UID,
    )
    for container in (uuidd, app):
        assert_confined(pod, container)
    assert_probed(uuidd, "startupProbe", "livenessProbe")


def test_the_daemon_set_keeps_socket_and_state_on_the_node() -> None:
    """The node's own folders, made where they are missing, and never two daemons on them."""
    pod = daemon_set()
    [uuidd], [folders] = pod["containers"], pod["initContainers"]
    for volume, path in (("socket", SOCKETS), ("state", STATE)):
        assert sources(pod)[volume] == {"hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        assert mounts(uuidd)[volume] == mounts(folders)[volume] == path
    assert set(mounts(uuidd)) == set(sources(pod))
    assert_confined(pod, uuidd)
    assert_probed(uuidd, "startupProbe", "readinessProbe", "livenessProbe")
    assert folders["image"] == uuidd["image"]
    assert folders["command"][2] == f"{UID}:{UID}"
    assert folders["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
    workers, daemons = manifests("daemonset.yaml")
    assert sources(pod)["workers"]["configMap"]["name"] == workers["metadata"]["name"]
    assert daemons["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"] == 0


def test_the_daemon_sets_consumer_finds_its_socket() -> None:
    """The snippet in the comment is a pod whose mount is the DaemonSet's folder."""
    _, snippet = (MANIFESTS / "daemonset.yaml").read_text().split(CONSUMER_HEADING)
    lines = [line.removeprefix("#").removeprefix(" ") for line in snippet.splitlines()]
    assert all(line.startswith("#") for line in snippet.splitlines())
    # Its indentation is what is left.
    pod = yaml.safe_load("\n".join(lines))["spec"]
    [app] = pod["containers"]
    assert sources(pod)["uuidd"] == sources(daemon_set())["socket"]
    assert app["volumeMounts"] == [{"name": "uuidd", "mountPath": SOCKETS, "readOnly": True}]
