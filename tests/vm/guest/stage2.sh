#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Second stage of a test machine, still process 1, with the host's files in
# sight: the remaining mounts, the link to the other host, then the command.
# Its exit code goes to the host as the last thing before the power goes off,
# and the power goes off only when the host says so: a machine that is done
# stays there for its peer.
. /run/vm/conf

mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null

export PATH="$VM_REPO/build/vm:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export HOME=/root TERM=dumb LANG=C.UTF-8 TMPDIR=/tmp
export QRDMA_HOST="$VM_HOST" QRDMA_HOSTS="$VM_HOSTS" QRDMA_REPO="$VM_REPO"
export QRDMA_KERNEL="$VM_KERNEL"
hostname "qrdma-$VM_HOST"
ip link set lo up
ulimit -l unlimited

mkdir -p /dev/virtio-ports
for port in /sys/class/virtio-ports/*; do
	[ ! -e "$port/name" ] || read -r name <"$port/name" || continue
	ln -s "../${port##*/}" "/dev/virtio-ports/$name"
done

if [ "$VM_HOSTS" -gt 1 ]; then
	modprobe virtio_net
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
	ip link set eth0 mtu 4200 up
	ip addr add "$VM_ADDR4/24" dev eth0
	ip addr add "$VM_ADDR6/64" dev eth0 nodad
fi
if [ -n "$VM_SHARE" ]; then
	mkdir -p /mnt/share
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none \
		share /mnt/share
fi
cd "$VM_CWD" || cd /

if [ "$VM_SHELL" = 1 ]; then
	echo "qrdma-vm: exit the shell to switch the machine off" >/dev/console
	TERM=linux setsid -c sh -i </dev/ttyS0 >/dev/ttyS0 2>&1
	busybox reboot -f
fi

exec 3<>/dev/virtio-ports/qrdma.ctl
echo "qrdma-vm: command starts" >/dev/kmsg
echo ready >&3
setsid -w /bin/sh -c "$VM_COMMAND" </dev/null \
	>/dev/virtio-ports/qrdma.out 2>&1 3>&-
rc=$?
echo "qrdma-vm: command ends, exit $rc" >/dev/kmsg
echo "exit $rc" >&3
read -r _ <&3
busybox reboot -f
