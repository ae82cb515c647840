# SPDX-License-Identifier: GPL-2.0
"""Judges a console log: did the kernel complain while the command ran?"""

import re

# stage2.sh writes this to the kernel log before it starts the command.
MARK = "qrdma-vm: command starts"

COMPLAINTS = re.compile(
    r"\bBUG\b|\bWARNING:|\bOops\b|general protection fault|Kernel panic"
    r"|INFO: possible|possible (circular|recursive|irq|deadlock)"
    r"|inconsistent lock state|suspicious RCU usage|Invalid wait context"
    r"|bad unlock balance|held lock|blocked for more than|rcu: INFO"
    r"|sleeping function called|scheduling while atomic|Bad page"
    r"|\bKASAN\b|kmemleak: \d|UBSAN|refcount_t|\bleak(s|ed)?\b"
    r"|unregister_netdevice: waiting|list_(add|del) corruption"
    r"|Objects remaining in|failed to drain|page allocation failure")

# Results of tests are no complaints, whatever a test is called.
TAP = re.compile(r"^(\[[ 0-9.]+\])?\s*(not ok |ok |# |1\.\.|K?TAP )")


# guest/selftests.sh writes this before each test.
TEST = re.compile(r"qrdma-vm: (test \S+)")


def complaints(text, allow=()):
    """Lines of a console log, after the mark, that no run may have; each with
    the name of the test during which it came, where tests are named."""
    allowed = [re.compile(a) for a in allow]
    _, mark, tail = text.partition(MARK)
    found, test = [], ""
    for line in (tail if mark else text).splitlines():
        match = TEST.search(line)
        if match:
            test = match.group(1) + ": "
        elif COMPLAINTS.search(line) and not TAP.search(line) \
                and not any(a.search(line) for a in allowed):
            found.append(test + line)
    return found
