# SPDX-License-Identifier: GPL-2.0
"""One QEMU process: its command line, its ports, its console log."""

import ctypes
import os
import signal
import socket
import subprocess
import tempfile

RPC_PORTS = 8

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """In the child: a QEMU whose run was killed must not stay behind."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Machine:
    """Found by name ("a", "b"); owned by the run; ended by its pid.

    ports maps "console", "out", "ctl", "rpc0".. to our end of a socket pair;
    the event loop of the run reads them.
    """

    def __init__(self, name, workdir):
        self.name = name
        self.workdir = workdir
        self.ports = {}
        self.theirs = []
        self.proc = None
        self.exit_code = None
        self.ready = False
        self.console_path = os.path.join(workdir, f"console-{name}.log")

    def _chardev(self, ident):
        ours, theirs = socket.socketpair()
        self.ports[ident] = ours
        self.theirs.append(theirs)
        return ["-chardev", f"socket,id={ident},fd={theirs.fileno()}"]

    def _port_args(self):
        args = ["-device", "virtio-serial-pci"]
        for ident in ["out", "ctl"] + [f"rpc{i}" for i in range(RPC_PORTS)]:
            args += self._chardev(ident)
            args += ["-device",
                     f"virtserialport,chardev={ident},name=qrdma.{ident}"]
        return args

    def command_line(self, opts, kernel, initrd, net):
        """Arguments of QEMU; net is the -netdev of the link, or None."""
        cpus = opts.smp
        threads = "single" if opts.icount else "multi"
        # Emulated, "rep movsb" is an instruction for each byte: with it no
        # count of instructions would say what a copy costs.
        model = "max,-erms" if opts.icount or opts.plugin else "max"
        append = ("console=ttyS0 net.ifnames=0 panic=-1 oops=panic "
                  "loglevel=7 nowatchdog tsc=reliable "
                  "rcupdate.rcu_cpu_stall_timeout=120 kunit.enable=1 ")
        args = ["qemu-system-x86_64", "-accel", f"tcg,thread={threads}",
                "-cpu", model, "-smp", f"{cpus},sockets={cpus}", "-m", opts.mem,
                "-nodefaults", "-no-user-config", "-display", "none",
                "-no-reboot", "-kernel", kernel, "-initrd", initrd,
                "-append", append + " ".join(opts.append),
                "-device", "virtio-rng-pci"]
        if opts.icount:
            args += ["-icount", "shift=0,sleep=off"]
        if opts.plugin:
            args += ["-plugin", opts.plugin]
        args += self._fs_args("root", "/", True)
        if opts.share:
            args += self._fs_args("share", os.path.abspath(opts.share), False)
        if net:
            mac = f"52:54:00:09:00:0{1 if self.name == 'a' else 2}"
            args += ["-netdev", net, "-device",
                     f"virtio-net-pci,netdev=net0,mac={mac}"]
            if opts.pcap and self.name == "a":
                args += ["-object", "filter-dump,id=pcap,netdev=net0,"
                         f"file={os.path.abspath(opts.pcap)}"]
        if opts.shell:
            return args + ["-serial", "mon:stdio"]
        args += self._chardev("console") + ["-serial", "chardev:console"]
        return args + self._port_args()

    @staticmethod
    def _fs_args(tag, path, readonly):
        path = path.replace(",", ",,")
        mode = "on" if readonly else "off"
        return ["-fsdev", f"local,id={tag},path={path},security_model=none,"
                f"readonly={mode},multidevs=remap",
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]

    def start(self, args):
        """Run QEMU; what it says itself goes to a file of its own."""
        self.stderr = tempfile.TemporaryFile(dir=self.workdir)
        self.proc = subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=self.stderr,
            stderr=self.stderr, pass_fds=[s.fileno() for s in self.theirs],
            preexec_fn=die_with_parent)
        for sock in self.theirs:
            sock.close()
        self.theirs = []

    def complaint(self):
        """What QEMU itself printed, if anything."""
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace").strip()

    def end(self):
        """End our QEMU process, and no other."""
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
        if self.proc:
            self.proc.wait()
        for sock in self.ports.values():
            sock.close()
