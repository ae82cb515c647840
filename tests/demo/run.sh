#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# make demo: two test machines on Debian's stock kernel; a real file over AF_QRDMA from a to b and back through a lossy
# link, then redis, unmodified, between them; and a look at what was on the wire. The Makefile has built everything before.
set -eu
REPO=$(cd "$(dirname "$0")/../.." && pwd)
cd "$REPO"
. scripts/env.sh
OUT=$REPO/build/demo
FILE=$(ls "$(stock_dir)"/boot/vmlinuz-*)
CLEAR=$(ls "$(stock_dir)"/boot/config-*)

# What the capture is searched for: a value in redis
SECRET=$(od -An -tx8 -N24 /dev/urandom | tr -d ' \n')

rm -rf "$OUT"
mkdir -p "$OUT/certs"
sh tests/userspace/certs.sh "$OUT/certs"
[ "$(stat -c %s "$FILE")" -ge 8000000 ] || die "$FILE has less than 8 MB: not the file that was meant"

say "demo: two emulated machines boot ($(basename "$FILE")); this takes a minute or two ..."
tests/vm/vm run --hosts 2 --timeout 900 --pcap "$OUT/wire.pcap" \
	--env DEMO_FILE="$FILE" --env DEMO_CLEAR="$CLEAR" --env QRDMA_CERTS="$OUT/certs" --env DEMO_SECRET="$SECRET" \
	--a 'sh tests/demo/host.sh a' --b 'sh tests/demo/host.sh b'
tests/demo/wire.py "$OUT/wire.pcap" --sealed "$FILE" --clear "$CLEAR" --secret demo:key --secret "$SECRET" --secret key:__rand_int__
say "demo: done. The capture is build/demo/wire.pcap."
