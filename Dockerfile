# An image of uuidd: `docker build -t uuidd .`, or `buildah bud --format docker -t uuidd .`
#
# BASE is any Debian-like image with python3 (3.11 or newer) and its venv module; the same for both
# stages, for a venv leans on the Python that made it.
ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS build

# For a mirror, or a build without a network (wheels in a folder that is mounted into the build, with
# PIP_NO_INDEX=1). pip reads them from the environment, where they are only if they are given.
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX

WORKDIR /src
COPY . .

# pip stays here: the venv that is shipped has none. Its .pyc files are made now, for the daemon can't
# write any where it runs. They are not compared with their sources, whose times a copy may change.
# With what "uuidctl status --openmetrics" needs: whoever runs an image can't add it.
RUN python3 -m venv /tools \
    && /tools/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && python3 -m venv --without-pip /opt/uuidd \
    && /tools/bin/pip --python /opt/uuidd/bin/python install --no-cache-dir --no-compile \
        "$(echo /wheels/uuidd-*.whl)[metrics]" \
    && /opt/uuidd/bin/python -m compileall -q -x /_tests/ --invalidation-mode unchecked-hash \
        /opt/uuidd/lib


FROM ${BASE}

LABEL org.opencontainers.image.title="uuidd" \
      org.opencontainers.image.description="A local daemon that hands out unique, time-based ids to all programs of a host" \
      org.opencontainers.image.licenses="MIT"

COPY --from=build /opt/uuidd /opt/uuidd

# A new named volume takes its owner from these folders; a bind mount has that of its host.
# The import leaves the .pyc files of those modules of Python itself that are used, where the base has
# none, as the default one. With the venv's that is 5.6 MB; without them each start, and each health
# check, takes three times as long (0.38 s for 0.13 s, and 0.21 s for 0.06 s).
RUN install -d -o 10001 -g 10001 /run/uuidd /var/lib/uuidd \
    && /opt/uuidd/bin/python -c "import uuidd.cli, uuidd.server.daemon, uuidd_client.command"

# A number, for Kubernetes' runAsNonRoot can't tell whether a name is root's.
USER 10001:10001

# In full, for a base may set none.
ENV PATH=/opt/uuidd/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

VOLUME ["/run/uuidd", "/var/lib/uuidd"]

STOPSIGNAL SIGTERM

# Whether the daemon answers; the first check comes after an interval. A container that is unhealthy
# may be restarted, which frees no disk: whether all kinds of ids are served is told by
# `uuidctl status --check`, for readiness.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["uuidctl", "status"]

# In the foreground, without a pid file. Options follow: `docker run IMAGE --worker 5`.
ENTRYPOINT ["uuidd", "-F", "-P"]
CMD []
