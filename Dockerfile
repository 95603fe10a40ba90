# The image of uuidd. Build: `docker build -t uuidd .`, or `buildah bud --format docker -t uuidd .`
#
# BASE can be any Debian-like image with python3 (3.11 or newer) and its venv module. Both stages use
# the same image, because a venv needs the Python that created it.
ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS build

# Settings of pip, for a mirror or for a build without a network (mount a folder with wheels into the
# build, name it in PIP_FIND_LINKS, and set PIP_NO_INDEX=1). Those that are not given stay unset.
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX

# What compiles the client's C extension; only this stage has it. A Python of Debian's needs python3-dev
# too. For a BASE that has all of it, or without the extension (UUIDD_EXTENSION=off), set it to "".
ARG BUILD_PACKAGES="gcc libc6-dev"
ARG UUIDD_EXTENSION=require
# The commit, for the version that the commands and the status show; there is no git here. For example
# $(git rev-parse --short=12 HEAD).
ARG UUIDD_COMMIT
# For worker numbers of a fleet.
ARG EXTRAS=etcd,zookeeper,postgresql

# hadolint ignore=DL3008,SC2086
RUN if [ -n "$BUILD_PACKAGES" ]; then \
        apt-get update -qq \
        && apt-get install -qqy --no-install-recommends $BUILD_PACKAGES \
        && rm -rf /var/lib/apt/lists/*; \
    fi

WORKDIR /src
COPY . .

# pip stays in this stage; the venv in the image has none. The .pyc files are made now, because the
# daemon cannot write in the image. "unchecked-hash" keeps Python from comparing them with the times of
# the sources, which a copy may change.
RUN python3 -m venv /tools \
    && /tools/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && python3 -m venv --without-pip /opt/uuidd \
    && /tools/bin/pip --python /opt/uuidd/bin/python install --no-cache-dir --no-compile \
        "$(echo /wheels/uuidd-*.whl)[$EXTRAS]" \
    && /opt/uuidd/bin/python -m compileall -q -x /_tests/ --invalidation-mode unchecked-hash \
        /opt/uuidd/lib


FROM ${BASE}

LABEL org.opencontainers.image.title="uuidd" \
      org.opencontainers.image.description="A local daemon that hands out unique, time-based ids to all programs of a host" \
      org.opencontainers.image.licenses="MIT"

COPY --from=build /opt/uuidd /opt/uuidd

# A new named volume gets the owner of these folders. (A bind mount keeps the owner that it has on the
# host.) The import makes the .pyc files of the modules of Python that the daemon uses, because the
# default base image has none. Together with those of the venv they take 5.6 MB. Without them a start
# takes 0.38 s in place of 0.13 s, and a health check 0.21 s in place of 0.06 s.
RUN install -d -o 10001 -g 10001 /run/uuidd /var/lib/uuidd \
    && /opt/uuidd/bin/python -c "import uuidd.cli, uuidd.server.daemon, uuidd_client.command"

# A number, because Kubernetes' runAsNonRoot cannot check a name.
USER 10001:10001

# The whole path, because a base image may set none.
ENV PATH=/opt/uuidd/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

VOLUME ["/run/uuidd", "/var/lib/uuidd"]

STOPSIGNAL SIGTERM

# This checks only whether the daemon answers, because an unhealthy container may be restarted, and a
# restart does not help with a full disk. `uuidctl status --check` also checks whether the daemon serves all
# kinds of ids: use it for readiness.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["uuidctl", "status"]

# In the foreground, without a pid file. Options follow the image's name: `docker run uuidd --worker 5`.
ENTRYPOINT ["uuidd", "-F", "-P"]
CMD []
