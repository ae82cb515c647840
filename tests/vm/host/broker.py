# SPDX-License-Identifier: GPL-2.0
"""Meeting point of the machines of one run: barriers and small values.

A guest asks over one of its virtio ports (guest/vmsync.c) with a line
"ID VERB NAME [HEX]" and gets one line back, "ID ok [HEX]" or "ID fail WHY",
which may take as long as the other machine needs.  Nothing here blocks or
sleeps: an answer that is not ready is kept until an event completes it.
"""


class Broker:
    """State of one run; called from the event loop only."""

    def __init__(self, hosts):
        self.hosts = set(hosts)
        self.values = {}
        self.arrived = {}       # barrier name -> {host: (reply, id)}
        self.getters = {}       # key -> [(port, reply, id)]
        self.broken = None

    def line(self, host, port, text, reply):
        """A request from a port of a host; reply(text) sends a line back."""
        self._forget(host, port)
        words = text.split()
        if len(words) < 3:
            return
        ident, verb, name = words[:3]
        data = words[3] if len(words) > 3 else ""
        if self.broken:
            reply(f"{ident} fail {self.broken}\n")
        elif verb == "put":
            self.values[name] = data
            reply(f"{ident} ok\n")
            for _, send, other in self.getters.pop(name, []):
                send(f"{other} ok {data}\n")
        elif verb == "get":
            if name in self.values:
                reply(f"{ident} ok {self.values[name]}\n")
            else:
                waiting = self.getters.setdefault(name, [])
                waiting.append(((host, port), reply, ident))
        elif verb == "barrier":
            self._barrier(host, port, name, ident, reply)
        else:
            reply(f"{ident} fail no such verb: {verb}\n")

    def _barrier(self, host, port, name, ident, reply):
        here = self.arrived.setdefault(name, {})
        here[host] = ((host, port), reply, ident)
        if set(here) == self.hosts:
            del self.arrived[name]
            for _, send, other in here.values():
                send(f"{other} ok\n")

    def _forget(self, host, port):
        """A new request on a port: whoever asked there before is gone."""
        origin = (host, port)
        for name, waiting in list(self.getters.items()):
            self.getters[name] = [w for w in waiting if w[0] != origin]
        for here in self.arrived.values():
            for other in [h for h, w in here.items() if w[0] == origin]:
                del here[other]

    def fail(self, why):
        """A machine is gone: nobody may wait for it any more."""
        self.broken = why
        for waiting in list(self.getters.values()):
            for _, send, ident in waiting:
                send(f"{ident} fail {why}\n")
        for here in self.arrived.values():
            for _, send, ident in here.values():
                send(f"{ident} fail {why}\n")
        self.getters.clear()
        self.arrived.clear()
