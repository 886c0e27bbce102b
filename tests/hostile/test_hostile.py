"""A worker that an attacker owns, beside one that nobody does: what it sends is refused, it is killed, replaced and
recorded, and the other's tunnels flow through it all."""

import os
import re
import shutil
import socket
import threading
import unittest

import harness
from harness import entry, read_exactly, tunnel, wait_until
from origins import EchoOrigin, HangingPort

HOSTILE = os.path.join(harness.BUILD, "tests/hostile/sallyport-worker")
HOSTILE_TITLE = "egress worker 0"
ALLOWED, HANGING = "allowed.test {port}", "allowed.test {hanging}"

# attack, its arguments, what the parent must find wrong (None: the kill alone is its answer)
KILLED = (
    ("short-message", "", "shorter than a type"),
    ("size-below", ALLOWED, "size"),
    ("size-above", ALLOWED, "size"),
    ("huge-message", ALLOWED, "."),
    ("empty-message", "", None),
    ("unknown-type", "", "unknown"),
    ("type-beyond-the-table", "", "unknown"),
    ("other-direction", "", "unknown"),
    ("other-role", "", "unknown"),
    ("ready-again", "", "state"),
    ("host-not-terminated", ALLOWED, "terminated"),
    ("host-with-nul", ALLOWED, "zero"),
    ("host-with-garbage-at-the-end", ALLOWED, "zero"),
    ("padding", ALLOWED, "padding"),
    ("ask-without-id", ALLOWED, "without an id"),
    ("ask-twice", HANGING, "in flight"),
    ("ask", "allowed.test 0", "port 0"),
    ("ask", " 443", "canonical"),
    ("ask", "Allowed.test 443", "canonical"),
    ("ask", "allowed.test. 443", "canonical"),
    ("ask", "allowed..test 443", "canonical"),
    ("ask", "allowed.test\tx 443", "canonical"),
    ("ask", "allowed.test/x 443", "canonical"),
    ("ask", "user@allowed.test 443", "canonical"),
    ("ask", "allowed%2etest 443", "canonical"),
    ("ask", "[::1] 443", "canonical"),
    ("ask", "::FFFF:7f00:1 443", "canonical"),
    ("ask", "\xc3\xa9.test 443", "canonical"),
    ("ask", "a" * 64 + ".test 443", "canonical"),
    ("no-descriptor", ALLOWED, "descriptor"),
    ("two-descriptors", ALLOWED, "descriptor"),
    ("many-descriptors", ALLOWED, "descriptor"),
    ("descriptor-where-none-belongs", "", "descriptor"),
    ("descriptor-is-a-pipe", ALLOWED, "no TCP connection"),
    ("descriptor-is-a-socketpair", ALLOWED, "no TCP connection"),
    ("descriptor-is-udp", ALLOWED, "no TCP connection"),
    ("descriptor-is-not-connected", ALLOWED, "no client"),
    ("descriptor-is-the-listener", ALLOWED, "no TCP connection"),
    ("descriptor-is-the-channel", ALLOWED, "no TCP connection"),
    ("descriptor-is-the-counters", ALLOWED, "no TCP connection"),
    ("descriptor-is-an-upstream", ALLOWED, "no client"),
    ("refused-with-upstream", ALLOWED, "no client"),
    ("refused-for-a-reason-of-the-parent", "", "not a worker's"),
    ("refused-for-no-reason", "", "not a worker's"),
    ("close-that-session", "0", "not granted"),
    ("close-that-session", "ffffffffffffffff", "not granted"),
    ("close-that-session", "{session}", "not granted"),
    ("close-twice", ALLOWED, "not granted"),
    ("ending-of-the-parent", ALLOWED, "ending"),
    ("ending-beyond-the-table", ALLOWED, "ending"),
    ("flood-beyond-the-credit", HANGING, "credit"),
    ("flood-unread", "denied.test 443", "read|credit"),
)

# What a worker may ask, and is told no: host, port, the audit's verdict and reason.
REFUSED = (
    ("denied.test", "443", "deny", "blocked-by-allowlist"),
    ("allowed.test", "22", "deny", "blocked-by-allowlist"),
    ("gist.test", "443", "deny", "blocked-by-allowlist"),
    ("127.0.0.1", "22", "deny", "blocked-by-allowlist"),
    ("127.0.0.1", "{sallyport}", "deny", "blocked-address"),
    ("169.254.169.254", "80", "deny", "blocked-by-allowlist"),
    ("meta.test", "80", "deny", "blocked-address"),
    ("::1", "80", "deny", "blocked-by-allowlist"),
    ("0x7f.1", "80", "deny", "blocked-address"),
    ("2130706433", "80", "deny", "blocked-address"),
)

# What it does before it says that it is confined.
AT_START = (
    ("unconfined", "it says that it is confined"),
    ("waives-all", "waived"),
    ("asks-first", "state"),
    ("silent", "not ready in time"),
)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.binaries = cls.enterClassContext(harness.Folder())
        for name in ("sallyport", "sallyport-resolver"):
            shutil.copy(os.path.join(harness.BUILD, name), cls.binaries)
        shutil.copy(HOSTILE, cls.binaries)
        cls.origin = cls.enterClassContext(EchoOrigin())
        cls.hanging = cls.enterClassContext(HangingPort())

    def start(self):
        ports = [self.origin.port, self.hanging.port]
        self.sallyport = harness.Sallyport(
            allow=[entry("allowed.test", *ports), "meta.test:80", "127.0.0.1:10000-65535"],
            deny=["gist.test"],
            hosts=["127.0.0.1 allowed.test", "169.254.169.254 meta.test"],
            binaries=self.binaries,
        )
        self.enterContext(self.sallyport)
        self.sallyport.expect(HOSTILE_TITLE)
        self.hostile = self.sallyport.children()[HOSTILE_TITLE]
        self.target = f"allowed.test:{self.origin.port}"
        self.open_honest_tunnel()

    # the honest worker

    def open_honest_tunnel(self):
        with self.sallyport.only_worker(1):
            self.honest = tunnel(self.sallyport.port, self.target)
        self.addCleanup(self.honest.close)
        peer = f"127.0.0.1:{self.honest.getsockname()[1]}"
        grant = self.sallyport.wait_audit(event="grant", client=peer)[0]
        self.assertEqual(grant["worker"], 1)
        self.session = grant["session"]
        self.pumping = True
        self.pumped = 0
        self.pump_failure = None
        self.pump_thread = threading.Thread(target=self.pump, daemon=True)
        self.pump_thread.start()
        self.addCleanup(self.stop_pump)

    def pump(self):
        """Bytes go through the honest worker all the time."""
        try:
            while self.pumping:
                self.honest.sendall(b"0123456789abcdef")
                if read_exactly(self.honest, 16) != b"0123456789abcdef":
                    raise AssertionError("other bytes came back")
                self.pumped += 1
        except (OSError, AssertionError) as failure:
            self.pump_failure = failure

    def stop_pump(self):
        self.pumping = False
        self.pump_thread.join(harness.PATIENCE_S)

    def check_honest(self):
        """It has gone on, goes on, and takes new ones."""
        before = self.pumped
        wait_until(lambda: self.pumped > before + 3 or self.pump_failure, "the honest worker's tunnel")
        self.assertIsNone(self.pump_failure)
        with self.sallyport.only_worker(1), tunnel(self.sallyport.port, self.target) as client:
            client.sendall(b"new")
            self.assertEqual(read_exactly(client, 3), b"new")

    # the hostile one

    def attack(self, name, arguments):
        """Returns the connection that gave the order."""
        words = arguments.format(
            port=self.origin.port, hanging=self.hanging.port, session=self.session, sallyport=self.sallyport.port
        )
        with self.sallyport.only_worker(0):
            client = socket.create_connection(("127.0.0.1", self.sallyport.port), harness.PATIENCE_S)
            self.addCleanup(client.close)
            client.sendall(f"{name} {words}\n".encode("latin-1"))
            self.assertEqual(read_exactly(client, 6), b"ready\n")
        client.sendall(b"go\n")
        return client

    def line_of(self, client):
        line = b""
        while not line.endswith(b"\n"):
            byte = client.recv(1)
            self.assertTrue(byte, "the hostile worker has ended")
            line += byte
        return line.decode().split()

    def check_replaced(self, why):
        if why is None:
            self.sallyport.wait_audit(event="child-ended", child=HOSTILE_TITLE)
        else:
            record = self.sallyport.wait_audit(event="child-killed", child=HOSTILE_TITLE)[0]
            self.assertRegex(record["why"], why)
            self.assertEqual(record["pid"], self.hostile)
        wait_until(lambda: self.sallyport.children().get(HOSTILE_TITLE, self.hostile) != self.hostile, "a new one")
        self.assertFalse(harness.is_alive(self.hostile))
        # The new one is hostile too, and serves: it takes an order and does as it is told.
        client = self.attack("ask", "denied.test 443")
        self.assertEqual(self.line_of(client), ["refusal", "blocked-by-allowlist"])
        self.assertEqual(self.sallyport.counters()["asks_open"], 0, "what the dead one had asked is given up")

    def run_killed(self, name, arguments, why):
        self.start()
        self.attack(name, arguments)
        self.check_replaced(why)
        self.check_honest()

    def test_refused_destinations(self):
        """An owned worker may ask. It is told no, as everybody is, and nothing else happens to it."""
        self.start()
        for host, port, verdict, reason in REFUSED:
            client = self.attack("ask", f"{host} {port}")
            self.assertEqual(self.line_of(client), ["refusal", reason], host)
            record = self.sallyport.audit(event="refusal")[-1]
            self.assertEqual((record["host"], record["verdict"], record["worker"]), (host, verdict, 0))
        self.assertEqual(self.sallyport.children()[HOSTILE_TITLE], self.hostile, "asking is no offence")
        self.check_honest()

    def test_granted_destination_is_in_the_record(self):
        self.start()
        client = self.attack("ask", f"allowed.test {self.origin.port}")
        word, session = self.line_of(client)
        self.assertEqual(word, "grant")
        grant = self.sallyport.audit(event="grant", worker=0)[-1]
        self.assertEqual(int(grant["session"], 16), int(session, 16))
        self.assertEqual(grant["client"], f"127.0.0.1:{client.getsockname()[1]}", "read by the parent")

    def test_late_messages_are_normal(self):
        self.start()
        self.attack("flood-abandons", "")
        client = self.attack("ask", "denied.test 443")
        self.assertEqual(self.line_of(client), ["refusal", "blocked-by-allowlist"])
        self.assertEqual(self.sallyport.children()[HOSTILE_TITLE], self.hostile)
        self.check_honest()

    def test_dies_again_and_again(self):
        """Replaced with growing pauses; the honest worker does not notice."""
        self.start()
        for count in range(1, 5):
            self.attack("unknown-type", "")
            self.sallyport.wait_audit(count, event="child-killed")
            former = self.hostile
            self.hostile = wait_until(
                lambda: next((p for t, p in self.sallyport.children().items() if t == HOSTILE_TITLE and p != former), 0),
                "a new one",
            )
        times = [self.seconds(record) for record in self.sallyport.audit(event="child-killed")]
        self.assertGreater(times[-1] - times[0], 0.05 + 0.1 + 0.2, "the pauses grow")
        self.check_honest()

    @staticmethod
    def seconds(record):
        hours, minutes, seconds = re.search(r"T(\d+):(\d+):([\d.]+)Z", record["time"]).groups()
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)

    def run_at_start(self, how, why):
        self.start()
        path = os.path.join(self.binaries, "at_start")
        with open(path, "w", encoding="ascii") as file:
            file.write(how)
        try:
            self.attack("unknown-type", "")
            record = self.sallyport.wait_audit(2, event="child-killed")[1]
        finally:
            os.unlink(path)
        self.assertRegex(record["why"], why)
        wait_until(lambda: HOSTILE_TITLE in self.sallyport.children(), "a new one")
        client = self.attack("ask", "denied.test 443")
        self.assertEqual(self.line_of(client), ["refusal", "blocked-by-allowlist"])
        self.check_honest()


def add_tests():
    """One test per row of the tables."""
    for number, row in enumerate(KILLED):
        name = re.sub(r"\W+", "_", f"killed_{number:02}_{row[0]}")
        setattr(Hostile, f"test_{name}", lambda self, row=row: self.run_killed(*row))
    for row in AT_START:
        name = re.sub(r"\W+", "_", row[0])
        setattr(Hostile, f"test_start_{name}", lambda self, row=row: self.run_at_start(*row))


add_tests()

if __name__ == "__main__":
    unittest.main()
