#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# Handshakes that an agent makes: what the program sees, what the agent does, what goes wrong.
exec "$QRDMA_REPO/build/selftests/test_agent"
