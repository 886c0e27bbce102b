#!/usr/bin/env python3
"""The resolver binary, confined as it ships, with this test as its parent and dns_server.py as its nameservers.

    resolver_test.py [unittest options]

SALLYPORT_BUILD names the folder of the binary (build). The messages are those of shared/messages.h.
"""

import collections
import errno
import fcntl
import ipaddress
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.environ.get("SALLYPORT_BUILD", os.path.join(HERE, "../../build")), "sallyport-resolver")
PATIENCE_S = 20
TIMEOUT_MS = 5000

READY, LOOKUP_ANSWER, WANT_SOCKET = 1, 6, 7
SETTINGS, HOSTS_FILE, LOOKUP, SOCKET, SOCKET_FAILED = 48, 49, 50, 51, 52
FOUND, NO_NAME, FAILED, TIMED_OUT, OVERLOADED = range(5)
UDP, TCP = 0, 1
LOG_FD, CHANNEL_FD, SESSION_FD_FIRST = 2, 3, 64
NOBODY = 65534

Answer = collections.namedtuple("Answer", "status addresses")


class Nameserver:
    def __init__(self, zone):
        self.log = tempfile.NamedTemporaryFile("r", prefix="dns-", suffix=".log", encoding="utf-8")
        command = [sys.executable, os.path.join(HERE, "dns_server.py"), "--stdin", "--log", self.log.name]
        self.process = subprocess.Popen(
            command + [json.dumps(zone)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())

    def questions(self):
        self.log.seek(0)
        return [json.loads(line) for line in self.log]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.log.close()


class Resolver:
    """The resolver and its parent's side. `ports` are those of the nameservers on 127.0.0.1."""

    def __init__(self, ports, timeout_ms=TIMEOUT_MS, hosts=None):
        self.ports = ports
        self.next_id = 0
        self.answers = {}
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.log = tempfile.TemporaryFile("w+")
        self.pid = spawn(theirs.fileno(), self.log.fileno())
        theirs.close()
        ready = self.receive()
        if struct.unpack_from("=I", ready)[0] != READY:
            raise AssertionError("READY was expected")
        self.channel.send(struct.pack("=IIIIII", SETTINGS, len(ports), timeout_ms, 3, 0, 0))
        if hosts is not None:
            self.send_hosts(hosts)

    def send_hosts(self, text):
        fd = os.memfd_create("hosts")
        os.write(fd, text.encode())
        socket.send_fds(self.channel, [struct.pack("=II", HOSTS_FILE, len(text))], [fd])
        os.close(fd)

    def receive(self):
        if not select.select([self.channel], [], [], PATIENCE_S)[0]:
            raise AssertionError("the resolver says nothing")
        packet = self.channel.recv(4096)
        if not packet:
            raise AssertionError(f"the resolver ended: {self.wait_for_end()}")
        return packet

    def give_socket(self, packet):
        _, server, kind, ticket = struct.unpack("=IHHQ", packet)
        handed = socket.socket(socket.AF_INET, (socket.SOCK_DGRAM if kind == UDP else socket.SOCK_STREAM))
        handed.setblocking(False)
        if handed.connect_ex(("127.0.0.1", self.ports[server])) not in (0, errno.EINPROGRESS):
            self.channel.send(struct.pack("=IIQ", SOCKET_FAILED, 0, ticket))
        else:
            socket.send_fds(self.channel, [struct.pack("=IIQ", SOCKET, 0, ticket)], [handed.fileno()])
        handed.close()

    def ask(self, name):
        self.next_id += 1
        self.channel.send(struct.pack("=IIQ256s", LOOKUP, 0, self.next_id, name.encode()))
        return self.next_id

    def wait(self, lookup):
        while lookup not in self.answers:
            packet = self.receive()
            kind = struct.unpack_from("=I", packet)[0]
            if kind == WANT_SOCKET:
                self.give_socket(packet)
            elif kind == LOOKUP_ANSWER:
                self.keep_answer(packet)
            else:
                raise AssertionError(f"unexpected message {kind}")
        return self.answers.pop(lookup)

    def keep_answer(self, packet):
        _, status, count, lookup = struct.unpack_from("=IHHQ", packet)
        if len(packet) != 16 + 16 * 17:
            raise AssertionError(f"an answer of {len(packet)} bytes")
        addresses = []
        for i in range(count):
            family, data = struct.unpack_from("=B16s", packet, 16 + 17 * i)
            addresses.append(str(ipaddress.ip_address(data if family == 6 else data[:4])))
        if any(packet[16 + 17 * count :]):
            raise AssertionError("what is not used is not zero")
        self.answers[lookup] = Answer(status, addresses)

    def resolve(self, name):
        return self.wait(self.ask(name))

    def wait_for_end(self):
        """The exit code, negative for a signal, and what it logged."""
        pidfd = os.pidfd_open(self.pid)
        if not select.select([pidfd], [], [], PATIENCE_S)[0]:
            os.kill(self.pid, signal.SIGKILL)
        os.close(pidfd)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.log.seek(0)
        return code, self.log.read()

    def stop(self):
        """Closes the channel, which is how a parent ends it."""
        self.channel.close()
        ended = self.wait_for_end()
        self.log.close()
        return ended


def spawn(channel, log):
    """As parent/spawn.c does: the channel and the log at their numbers, every other low number occupied."""
    with open("/dev/null", "r+b", buffering=0) as null:
        sources = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SESSION_FD_FIRST) for fd in (null.fileno(), channel, log)}
        number_of = {CHANNEL_FD: sources[channel], LOG_FD: sources[log]}
        actions = [
            (os.POSIX_SPAWN_DUP2, number_of.get(number, sources[null.fileno()]), number)
            for number in range(SESSION_FD_FIRST)
        ]
        pid = os.posix_spawn(BINARY, ["sallyport: resolver"], environment(), file_actions=actions)
        for fd in sources.values():
            os.close(fd)
        return pid


def environment():
    """Without namespaces, which only the true parent makes; every other step of confinement is in force, or waived for
    want of root."""
    uid, gid = (NOBODY, NOBODY) if os.getuid() == 0 else (os.getuid(), os.getgid())
    order = f"best-effort=1 namespaced=0 uid={uid} gid={gid} descriptors=1024"
    kept = {key: os.environ[key] for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if key in os.environ}
    return {"TZ": "UTC0", "SALLYPORT_CONFINE": order} | kept


class ResolverTest(unittest.TestCase):
    def nameserver(self, zone):
        server = Nameserver(zone)
        self.addCleanup(server.stop)
        return server

    def resolver(self, *servers, **options):
        resolver = Resolver([s if isinstance(s, int) else s.port for s in servers], **options)
        self.addCleanup(lambda: self.assertEqual(resolver.stop()[0], 0))
        return resolver

    def closed_port(self):
        """A port that answers nobody and that no other test can get meanwhile."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        holder.bind(("127.0.0.1", 0))
        # Connected elsewhere, it receives nothing from the resolver, which is told that the port is unreachable.
        holder.connect(("127.0.0.1", 9))
        self.addCleanup(holder.close)
        return holder.getsockname()[1]

    def test_addresses_of_both_families(self):
        server = self.nameserver({"a.test": {"A": ["192.0.2.1", "192.0.2.2"], "AAAA": ["2001:db8::1"]}})
        resolver = self.resolver(server)
        self.assertEqual(resolver.resolve("a.test"), (FOUND, ["2001:db8::1", "192.0.2.1", "192.0.2.2"]))
        self.assertEqual(resolver.resolve("nx.test"), (NO_NAME, []))

    def test_every_question_has_its_port_and_a_random_id(self):
        names = [f"n{i}.test" for i in range(100)]
        server = self.nameserver({"*": {"A": ["192.0.2.1"], "ttl": 0}})
        first_ids = []
        for _ in range(2):
            resolver = self.resolver(server)
            before = len(server.questions())
            for name in names:
                self.assertEqual(resolver.resolve(name).status, FOUND)
            asked = server.questions()[before:]
            self.assertEqual(len(asked), 2 * len(names))
            ids = [question["id"] for question in asked]
            self.assertGreater(len(set(ids)), 190)
            first_ids.append(ids)
            # The kernel may give a port again that was closed, but a handful of fixed ports is no choice at all.
            self.assertGreater(len({question["source_port"] for question in asked}), 180)
        self.assertLess(sum(a == b for a, b in zip(*first_ids)), 5)

    def test_truncated_and_oversized_answers_come_by_tcp(self):
        server = self.nameserver(
            {"big.test": {"many": 300}, "tc.test": {"A": ["192.0.2.1"], "truncate": True},
             "fat.test": {"many": 60, "oversized": True}}
        )
        resolver = self.resolver(server)
        self.assertEqual(len(resolver.resolve("big.test").addresses), 16)
        self.assertEqual(resolver.resolve("tc.test"), (FOUND, ["192.0.2.1"]))
        self.assertEqual(len(resolver.resolve("fat.test").addresses), 16)
        self.assertEqual({q["name"] for q in server.questions() if q["transport"] == "tcp"},
                         {"big.test", "tc.test", "fat.test"})

    def test_tcp_that_is_closed(self):
        server = self.nameserver({"a.test": {"many": 300, "close_tcp": True}})
        self.assertEqual(self.resolver(server).resolve("a.test").status, FAILED)

    def test_aliases(self):
        server = self.nameserver(
            {"a.test": {"CNAME": "b.test"}, "b.test": {"CNAME": "c.test"}, "c.test": {"A": ["192.0.2.3"]},
             "loop.test": {"CNAME": "pool.test"}, "pool.test": {"CNAME": "loop.test"},
             "dangling.test": {"CNAME": "nowhere.test"}}
        )
        resolver = self.resolver(server)
        self.assertEqual(resolver.resolve("a.test"), (FOUND, ["192.0.2.3"]))
        self.assertEqual(resolver.resolve("loop.test").status, FAILED)
        self.assertEqual(resolver.resolve("dangling.test").status, NO_NAME)

    def test_failures(self):
        server = self.nameserver(
            {"servfail.test": {"rcode": "SERVFAIL"}, "refused.test": {"rcode": "REFUSED"},
             "formerr.test": {"rcode": "FORMERR"}, "garbage.test": {"garbage": True}}
        )
        resolver = self.resolver(server)
        for name in ("servfail.test", "refused.test", "formerr.test", "garbage.test"):
            self.assertEqual(resolver.resolve(name), (FAILED, []), name)

    def test_silence_and_only_forgeries_time_out(self):
        server = self.nameserver({"silent.test": {"silent": True}, "forged.test": {"wrong_ids": 5, "only_wrong": True}})
        resolver = self.resolver(server, timeout_ms=400)
        waiting = [resolver.ask("silent.test"), resolver.ask("forged.test")]
        self.assertEqual([resolver.wait(lookup).status for lookup in waiting], [TIMED_OUT, TIMED_OUT])

    def test_forgeries_before_the_answer(self):
        entry = {"A": ["192.0.2.1"], "wrong_ids": 10, "wrong_question": True, "empty_packet": True}
        resolver = self.resolver(self.nameserver({"a.test": entry}))
        self.assertEqual(resolver.resolve("a.test"), (FOUND, ["192.0.2.1"]))

    def test_one_family_is_late(self):
        server = self.nameserver({"a.test": {"A": ["192.0.2.1"], "AAAA": ["2001:db8::1"], "silent": ["AAAA"]}})
        resolver = self.resolver(server)
        began = time.monotonic()
        self.assertEqual(resolver.resolve("a.test"), (FOUND, ["192.0.2.1"]))
        self.assertLess(time.monotonic() - began, TIMEOUT_MS / 1000)

    def test_rebinding_and_the_cache(self):
        later = [{"A": ["127.0.0.1"], "ttl": 0}]
        server = self.nameserver(
            {"zero.test": {"A": ["192.0.2.1"], "ttl": 0, "then": later},
             "kept.test": {"A": ["192.0.2.1"], "ttl": 300, "then": later}}
        )
        resolver = self.resolver(server)
        self.assertEqual([resolver.resolve("zero.test").addresses for _ in range(3)],
                         [["192.0.2.1"], ["127.0.0.1"], ["127.0.0.1"]])
        self.assertEqual([resolver.resolve("kept.test").addresses for _ in range(3)], [["192.0.2.1"]] * 3)

    def test_a_nameserver_that_is_not_there(self):
        server = self.nameserver({"a.test": {"A": ["192.0.2.1"]}})
        self.assertEqual(self.resolver(self.closed_port(), server).resolve("a.test"), (FOUND, ["192.0.2.1"]))
        self.assertEqual(self.resolver(self.closed_port()).resolve("a.test").status, FAILED)

    def test_hosts_file(self):
        server = self.nameserver({"*": {"A": ["192.0.2.1"]}})
        resolver = self.resolver(server, hosts="10.0.0.1 Db.Internal\n::1 db.internal # own\n")
        self.assertEqual(resolver.resolve("db.internal"), (FOUND, ["10.0.0.1", "::1"]))
        resolver.send_hosts("".join(f"10.0.{i // 256}.{i % 256} h{i}.internal\n" for i in range(20000)))
        self.assertEqual(resolver.resolve("h300.internal"), (FOUND, ["10.0.1.44"]))
        self.assertEqual(server.questions(), [])
        self.assertEqual(resolver.resolve("db.internal"), (FOUND, ["192.0.2.1"]))

    def test_more_lookups_than_channels_and_bound(self):
        server = self.nameserver({"*": {"A": ["192.0.2.1"]}})
        resolver = self.resolver(server)
        waiting = [resolver.ask(f"n{i}.test") for i in range(400)]
        for lookup in waiting:
            self.assertEqual(resolver.wait(lookup), (FOUND, ["192.0.2.1"]))
        if os.getuid() == 0:  # for others the process shows nothing: it is not dumpable
            descriptors = len(os.listdir(f"/proc/{resolver.pid}/fd"))
            self.assertLess(descriptors, SESSION_FD_FIRST + 40)

    def test_ends_with_a_malformed_message(self):
        resolver = Resolver([])
        resolver.channel.send(struct.pack("=II", LOOKUP, 0))
        code, log = resolver.stop()
        self.assertEqual(code, 1)
        self.assertIn("malformed", log)


if __name__ == "__main__":
    unittest.main()
