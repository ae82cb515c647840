#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# make check: every test there is, stage by stage.  A failed stage does not
# stop the others; each leaves its log in build/check/.  Prints what failed
# with the end of its log, and as the last line the count of all results.
#
# usage: check.sh [STAGE...]
#
# A stage that prints TAP counts by its results, another one counts as one. A
# stage that this machine cannot do exits 4 and counts as skipped.
set -u

REPO=$(cd "$(dirname "$0")/.." && pwd)
. "$REPO/scripts/env.sh"
cd "$REPO" || exit 1
LOGS=build/check
ALL="setup build kernels lint core core-big userspace install sim fuzz kunit demo \
selftests selftests-san newer"

# stage NAME: "LIMIT COMMAND", the limit in seconds: a test that hangs fails.
stage() {
	case $1 in
	setup) echo 1200 scripts/setup.sh packages image programs ;;
	build) echo 900 make all ;;
	kernels) echo 3600 tests/vm/kernel.sh dir kunit ;;
	lint) echo 900 tests/lint/run.sh ;;
	core) echo 900 make core ;;
	core-big) echo 900 tests/core/big.sh ;;
	userspace) echo 600 make -s -C tests/userspace run ;;
	install) echo 900 tests/install.sh ;;
	sim) echo 1200 make sim ;;
	fuzz) echo $((900 + ${FUZZ_SECONDS:-60} * 6)) make fuzz ;;
	kunit) echo 1500 tests/kunit/run.sh ;;
	demo) echo 1800 make demo ;;
	selftests) echo 3600 tests/vm/selftests --kernel stock ;;
	selftests-san) echo 3600 tests/vm/selftests --kernel san --short ;;
	newer) echo 1800 tests/vm/newer.sh build ;;
	*) die "no stage '$1'" ;;
	esac
}

# run_stage NAME: adds its counts to passed, failed, skipped
run_stage() {
	log=$LOGS/$1.log
	began=$(date +%s)
	# shellcheck disable=SC2046
	timeout -k 20 $(stage "$1") >"$log" 2>&1 </dev/null
	rc=$?
	set -- "$1" $(awk -f scripts/count.awk "$log")
	p=$2 f=$3 s=$4
	if [ $rc -eq 4 ] && [ "$f" -eq 0 ]; then
		s=$((s + 1))
		say "!!! $1 SKIPPED: $(tail -n 1 "$log")"
	elif [ $rc -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
	elif [ $((p + f + s)) -eq 0 ]; then
		p=1
	fi
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
	took=$(($(date +%s) - began))
	printf '%-14s %5d passed %3d failed %3d skipped   %4d s\n' \
		"$1" "$p" "$f" "$s" "$took"
	if [ "$f" -ne 0 ]; then
		bad="$bad $1"
		echo "--- $1 failed (exit code $rc), the end of $log:"
		grep -E '^ *not ok' "$log" | head -n 20
		tail -n 40 "$log"
		echo "---"
	fi
}

passed=0 failed=0 skipped=0 bad=
mkdir -p "$LOGS"
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $ALL
for name; do
	stage "$name" >/dev/null || exit 2
done
for name; do
	run_stage "$name"
done
echo
[ -z "$bad" ] || echo "failed stages:$bad"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
