#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# All lints, as one TAP document; each is a program of this directory that
# says what is wrong and where, and exits 1.
#
# usage: run.sh [LINT...]
set -u

HERE=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- layers sizes texts headers sparse style
n=0
bad=0
echo "TAP version 13"
echo "1..$#"
for lint; do
	n=$((n + 1))
	if out=$("$HERE/$lint" 2>&1); then
		echo "ok $n lint-$lint"
	else
		echo "$out" | sed 's/^/# /'
		echo "not ok $n lint-$lint"
		bad=1
	fi
done
exit $bad
