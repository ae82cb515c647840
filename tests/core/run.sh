#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run test programs one after the other and print one TAP document: each program
# is a test point, its own TAP is indented above it. Exit 1 when any failed.
# $RUN: what runs a program that this machine cannot.

i=0
bad=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

echo "TAP version 13"
echo "1..$#"
for prog in "$@"; do
	i=$((i + 1))
	${RUN:-} "$prog" >"$out" 2>&1
	rc=$?
	sed 's/^/    /' "$out"
	if [ $rc -eq 0 ]; then
		echo "ok $i ${prog##*/}"
	else
		echo "not ok $i ${prog##*/} # exit code $rc"
		bad=1
	fi
done
exit $bad
