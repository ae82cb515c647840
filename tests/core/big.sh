#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The unit tests as programs of a big-endian machine (s390x) in QEMU, field
# case F19. Exit 4 when this machine cannot have the compiler and the emulator.
set -u

REPO=$(cd "$(dirname "$0")/../.." && pwd)
"$REPO/scripts/setup.sh" big || {
	echo "no compiler or emulator of s390x: nothing was tested on big-endian"
	exit 4
}
exec make -s -C "$REPO/tests/core" -j"$(nproc)" big
