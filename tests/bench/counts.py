# SPDX-License-Identifier: GPL-2.0
"""What counter.c has written: instructions by function, and by what it is."""

import bisect
import re

# What a function belongs to: first by its module, then by its name; the first
# pattern that matches. "rxe" is what an RNIC does in hardware, with the
# network stack that carries its packets ("net").
MODULES = (
    (r"^rdma_rxe$", "rxe"),
    (r"^qrdma$", "qrdma"),
    (r"^(ib_|rdma_|iw_cm)", "verbs"),
    (r"^(aesni|ghash|gcm|ccm|ctr|crypto_simd|chacha|poly1305|lib(aes|chacha|poly)|"
     r"curve25519)", "aead"),
    (r"^tls$", "tls"),
    (r"^crc32", "rxe"),
    (r"^veth$", "net"),
    (r"^qrdma_aead_bench$", "aead"),
)
NAMES = (
    (r"^(crc32_|__crc32|crypto_shash|shash_)", "rxe"),
    (r"^(crypto_|aead_|gcm_|skcipher_|scatterwalk_|aes_|kernel_fpu|irq_fpu|"
     r"chacha|poly1305|ghash|gf128|sg_|__crypto|fpregs|restore_fpregs|"
     r"save_fpregs|switch_fpu)", "aead"),
    (r"^(_?copy_|rep_|memcpy|__memcpy|memset|__memset|memmove|__memmove|"
     r"_copy|__copy|copy_user|clear_user|clear_page)", "copy"),
    (r"^(tcp_|__tcp|inet_|sk_stream|tls_)", "tcp"),
    (r"^(ip_|__ip|ip6|dev_|__dev|netif|__netif|napi|__napi|net_|skb_|__skb|"
     r"kfree_skb|consume_skb|__alloc_skb|alloc_skb|__kfree_skb|eth_|udp|__udp|"
     r"process_backlog|enqueue_to_backlog|fib_|rt_|dst_|ipv4|sch_|pskb|"
     r"validate_xmit|nf_|neigh|sock_wfree|sock_def|fq_|noqueue|loopback|"
     r"__build_skb|build_skb|napi_|gro_|inet_gro|csum)", "net"),
    (r"^(kmem_cache|kmalloc|__kmalloc|kfree|__slab|___slab|slab_|__kmem|"
     r"page_frag|__alloc_pages|alloc_pages|get_page_from|free_unref|__free_page|"
     r"ksize|__ksize|memcg_|obj_cgroup|mod_objcg|refill_obj|get_obj_cgroup|"
     r"free_compound|page_counter|try_charge|__page_frag|put_page)", "memory"),
    (r"^(schedule|__schedule|try_to_wake|wake_|__wake|select_task|pick_next|"
     r"update_|enqueue_task|dequeue_task|set_next|put_prev|ttwu|resched|"
     r"finish_task|prepare_task|__switch|switch_mm|load_new_mm|sched_|"
     r"default_wake|autoremove|available_idle|check_preempt|"
     r"activate_task|dequeue_entity|enqueue_entity|place_entity|native_sched|"
     r"psi_|cpuacct|__calc_delta|reweight)", "scheduler"),
)
GROUPS = ("user", "qrdma", "aead", "copy", "verbs", "rxe", "net", "tcp", "tls",
          "memory", "scheduler", "rest")


class Symbols:
    """The guest's /proc/kallsyms, several times over."""

    def __init__(self, path):
        table = set()
        with open(path, encoding="ascii") as file:
            for line in file:
                words = line.split()
                addr = int(words[0], 16)
                if words[1] in "tTwW" and addr >> 63:
                    module = words[3][1:-1] if len(words) > 3 else ""
                    table.add((addr, words[2], module))
        table = sorted(table)
        self.addrs = [entry[0] for entry in table]
        self.table = table
        self.cache = {}

    def find(self, addr):
        """(name, module) of the function that an address lies in."""
        if addr not in self.cache:
            at = bisect.bisect_right(self.addrs, addr) - 1
            self.cache[addr] = self.table[at][1:] if at >= 0 else ("?", "")
        return self.cache[addr]


def group_of(name, module):
    """Which of GROUPS a function of the kernel belongs to."""
    if module:
        for pattern, group in MODULES:
            if re.match(pattern, module):
                return group
        return "rest"
    for pattern, group in NAMES:
        if re.match(pattern, name):
            return group
    return "rest"


class Counted:
    """One measurement: totals, and by function; lists are by processor."""

    def __init__(self):
        self.cpus = []
        self.groups = {}
        self.functions = {}

    @property
    def total(self):
        return sum(self.cpus)

    def add(self, group, name, counts):
        """Account instructions."""
        if not self.cpus:
            self.cpus = [0] * len(counts)
        for cpu, count in enumerate(counts):
            self.cpus[cpu] += count
        total = sum(counts)
        self.groups[group] = self.groups.get(group, 0) + total
        was = self.functions.get(name)
        if was:
            for cpu, count in enumerate(counts):
                was[1][cpu] += count
        else:
            self.functions[name] = (group, list(counts))


def read_counts(path, symbols):
    """{number of the mark: Counted}"""
    result = {}
    known = {}
    now = None
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "mark":
                now = result[int(words[1])] = Counted()
                continue
            counts = [int(word) for word in words[1:]]
            if words[0] == "user":
                now.add("user", "(user)", counts)
                continue
            addr = words[0]
            if addr not in known:
                name, module = symbols.find(int(addr, 16))
                known[addr] = (group_of(name, module), name)
            now.add(*known[addr], counts)
    return result
