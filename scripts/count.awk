# SPDX-License-Identifier: GPL-2.0
# Count the results of a TAP or KTAP document: prints "PASSED FAILED SKIPPED".
# A result that stands above its own subtests (a suite, a test program) is
# counted only when it failed without one of them having failed.
{
	line = $0
	sub(/^b\| /, "", line)
	if (line !~ /^ *(not )?ok [0-9]/)
		next
	match(line, /^ */)
	indent = RLENGTH
	parent = seen && indent < last
	if (indent > last)
		below = 0
	last = indent
	seen = 1
	if (line ~ /# *(SKIP|skip)/) {
		if (!parent)
			skipped++
	} else if (line ~ /^ *not ok/) {
		if (!parent || !below)
			failed++
		below = !parent
	} else {
		if (!parent)
			passed++
		else
			below = 0
	}
	if (parent)
		below = 0
}
END { print passed + 0, failed + 0, skipped + 0 }
