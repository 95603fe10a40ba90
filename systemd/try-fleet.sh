#!/bin/sh
# A private engine and three daemons in a temporary folder: shows a Snowflake of each, and who has
# which number. It needs etcd, and leaves nothing behind.
(
  folder=$(mktemp -d); cd "$folder"; trap 'kill $pids; wait; rm -rf "$folder"' EXIT
  engine=http://127.0.0.1:23790 fleet=etcd://127.0.0.1:23790/uuidd/try
  etcd --data-dir etcd --log-level error --listen-client-urls $engine --advertise-client-urls $engine \
    --listen-peer-urls http://127.0.0.1:23791 2>etcd.log & pids=$!
  until uuidd workers init $fleet --new 2>/dev/null; do sleep 0.2; done
  for host in a b c; do
    mkdir $host
    uuidd -F -P -q --state $host --socket $host/socket --worker $fleet & pids="$! $pids"
  done
  for host in a b c; do
    until UUIDD_SOCKET=$host/socket uuidctl new -k snowflake 2>/dev/null; do sleep 0.2; done
  done
  uuidd workers list $fleet
)
