"""Backups of real engines, made and restored as their own manuals say."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fleet.servers import PASSWORD, STARTED_SECONDS, USER, Etcd, Postgresql, Server
from tests.rig import until
from tests.tools import need, output


class Backup:
    """What *engine*, which has one node and runs, knows now; a copy in *folder*."""

    def __init__(self, engine: Server, folder: Path) -> None:
        self._engine = engine
        self._copy = folder / "backup"
        if isinstance(engine, Etcd):
            engine.etcdctl("snapshot", "save", self._copy)
        elif isinstance(engine, Postgresql):
            self._sql("pg_dump", "--clean", f"--file={self._copy}")
        else:
            shutil.copytree(self._data / "version-2", self._copy)

    def restore(self) -> None:
        """Let the engine know nothing else; it is away meanwhile, as PostgreSQL need not be."""
        engine = self._engine
        if isinstance(engine, Postgresql):
            self._sql("psql", "--quiet", "--set=ON_ERROR_STOP=1", f"--file={self._copy}")
            return
        engine.power_cut(0)
        if isinstance(engine, Etcd):
            shutil.rmtree(self._data)
            peer = f"http://127.0.0.1:{engine.ports[0][1]}"
            engine.etcdctl(
                *("snapshot", "restore", self._copy, "--name=n0", f"--data-dir={self._data}"),
                *(f"--initial-cluster=n0={peer}", f"--initial-advertise-peer-urls={peer}"),
            )
        else:
            shutil.rmtree(self._data / "version-2")
            shutil.copytree(self._copy, self._data / "version-2")
        engine.start(0)
        until(engine.ready, STARTED_SECONDS, instead=engine.log)

    @property
    def _data(self) -> Path:
        return self._engine.folder / "n0"

    def _sql(self, program: str, *words: str) -> None:
        url = f"postgresql://{USER}@127.0.0.1:{self._engine.ports[0][0]}/postgres"
        output(need(program), *words, url, env={"PGPASSWORD": PASSWORD, "LC_ALL": "C"})
