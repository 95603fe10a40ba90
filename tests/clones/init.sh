#!/bin/busybox sh
# The first process of the machine: it starts the daemon, a program with each implementation of the
# client on a port of its own, and a shell on the last port. The daemon's log is on the console.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run/uuidd /var/lib/uuidd /etc
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm
/bin/busybox mount -t tmpfs shm /dev/shm
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ PYTHONPATH=/site PYTHONDONTWRITEBYTECODE=1
exec </dev/ttyS0 >/dev/ttyS0 2>&1
for port in 1 2 3; do stty -F /dev/ttyS$port raw -echo; done
echo 0123456789abcdef0123456789abcdef >/etc/machine-id
echo root:x:0:0::/:/bin/sh >/etc/passwd
echo root:x:0: >/etc/group
python /site/bin/uuidd -F --socket /run/uuidd/request $UUIDD_OPTIONS &
until [ -S /run/uuidd/request ]; do sleep 0.1; done
UUIDD_EXTENSION=require python /guest.py /dev/ttyS1 /run/uuidd/request &
UUIDD_EXTENSION=off python /guest.py /dev/ttyS2 /run/uuidd/request &
while true; do sh </dev/ttyS3 >/dev/ttyS3; done
