# SPDX-License-Identifier: GPL-2.0
"""The initial RAM disk: busybox, the modules that reach the host's root, init.

Owns the format (cpio "newc") and the choice of modules.  Called once per run
by the machine; the result is two archives behind each other: one that depends
on the kernel only, one with the run's own settings.
"""

import os
import stat

BUSYBOX = ("/bin/busybox", "/usr/bin/busybox")

# What init needs before it can see the host's files; dependencies are added.
MODULES = ("virtio_pci", "virtio_console", "virtio_rng", "9pnet_virtio", "9p",
           "overlay")


class InitrdError(Exception):
    """The kernel directory or the host lacks something; says what."""


def _entry(name, mode, data=b""):
    """One cpio member with its padding."""
    path = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % f for f in fields) + path
    head += b"\0" * (-len(head) % 4)
    return head + data + b"\0" * (-len(data) % 4)


def archive(files, dirs=()):
    """A cpio archive of {path: (mode, bytes)} with the directories first."""
    out = [_entry(d, stat.S_IFDIR | 0o755) for d in dirs]
    out += [_entry(n, stat.S_IFREG | m, d) for n, (m, d) in files.items()]
    out.append(_entry("TRAILER!!!", 0))
    blob = b"".join(out)
    return blob + b"\0" * (-len(blob) % 512)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _base(path):
    """Module name of a path in modules.dep or modules.builtin."""
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def module_list(moddir):
    """Paths (below moddir) to insert, in order; what is built in is left out."""
    deps = {}
    with open(os.path.join(moddir, "modules.dep"), encoding="ascii") as file:
        for line in file:
            path, _, needs = line.strip().partition(":")
            deps[_base(path)] = (path, needs.split())
    with open(os.path.join(moddir, "modules.builtin"), encoding="ascii") as file:
        builtin = {_base(line.strip()) for line in file}
    order = []
    for name in MODULES:
        if name in builtin:
            continue
        if name not in deps:
            raise InitrdError(f"{moddir} has no module {name}")
        path, needs = deps[name]
        # modules.dep lists the deepest dependency last
        for item in list(reversed(needs)) + [path]:
            if item not in order:
                order.append(item)
    return order


def kernel_part(moddir, init):
    """Archive with busybox, init and the modules of one kernel."""
    busybox = next((b for b in BUSYBOX if os.path.exists(b)), None)
    if not busybox:
        raise InitrdError("busybox is missing (package busybox-static)")
    files = {"init": (0o755, _read(init)),
             "bin/busybox": (0o755, _read(busybox))}
    order = []
    for number, path in enumerate(module_list(moddir)):
        name = f"{number:02d}-{os.path.basename(path)}"
        files["modules/" + name] = (0o644, _read(os.path.join(moddir, path)))
        order.append(name)
    files["modules/order"] = (0o644, "".join(n + "\n" for n in order).encode())
    dirs = ("bin", "modules", "proc", "sys", "dev", "ro", "rw", "new", "job")
    return archive(files, dirs)


def job_part(conf):
    """Archive with the shell assignments that init and stage2.sh read."""
    return archive({"job/conf": (0o644, conf.encode())})
