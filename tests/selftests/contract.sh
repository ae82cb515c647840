#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=120 short=no
# The same socket calls over TCP and over AF_QRDMA: results, errnos, poll bits.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"

# A host that is silent: its neighbour is known, and nobody has that address.
ip route replace 10.9.0.77 dev va src "$A4"
ip neigh replace 10.9.0.77 lladdr 02:00:00:00:00:77 dev va nud permanent
ip -6 route replace fd09::4d dev va src "$A6"
ip -6 neigh replace fd09::4d lladdr 02:00:00:00:00:77 dev va nud permanent
exec "$QRDMA_REPO/build/selftests/test_contract"
