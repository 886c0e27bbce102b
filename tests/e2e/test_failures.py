"""Processes that die, and an audit log that cannot be written."""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import harness
from harness import connect, entry, read_exactly, read_head, refusal, tunnel, wait_until
from origins import EchoOrigin

WITHIN_S = 1.0 if not os.environ.get("SALLYPORT_BUILD", "").endswith(("asan", "ubsan")) else 5.0
TMPFS_BYTES = 65536


class Deaths(unittest.TestCase):
    def start(self, **settings):
        self.origin = self.enterContext(EchoOrigin())
        self.target = f"allowed.test:{self.origin.port}"
        sallyport = harness.Sallyport(
            allow=[entry("allowed.test", self.origin.port), f"127.0.0.1:{self.origin.port}"],
            hosts=["127.0.0.1 allowed.test"],
            **settings,
        )
        return self.enterContext(sallyport)

    def echo(self, client, text=b"ping"):
        client.sendall(text)
        self.assertEqual(read_exactly(client, len(text)), text)

    def open(self, sallyport):
        """(worker index, tunnel)"""
        client = tunnel(sallyport.port, self.target)
        self.addCleanup(client.close)
        peer = f"127.0.0.1:{client.getsockname()[1]}"
        return sallyport.wait_audit(event="grant", client=peer)[-1]["worker"], client

    def open_on_both(self, sallyport):
        """{worker index: tunnel}"""
        tunnels = {}
        for index in (0, 1):
            with sallyport.only_worker(index):
                worker, tunnels[index] = self.open(sallyport)
            self.assertEqual(worker, index)
        return tunnels

    def kill(self, sallyport, title):
        pid = sallyport.children()[title]
        os.kill(pid, signal.SIGKILL)
        return pid

    def new_tunnel_in_time(self, sallyport, target=None):
        started = time.monotonic()
        with tunnel(sallyport.port, target or self.target) as client:
            self.echo(client)
        self.assertLess(time.monotonic() - started, WITHIN_S)

    def wait_replaced(self, sallyport, title, former):
        return wait_until(lambda: sallyport.children().get(title, former) != former, f"a new {title}")

    def test_killed_worker(self):
        sallyport = self.start()
        tunnels = self.open_on_both(sallyport)
        killed = self.kill(sallyport, "egress worker 0")
        self.new_tunnel_in_time(sallyport)
        self.echo(tunnels[1])
        self.assertIn(tunnels[0].recv(1), (b"",), "its tunnels end")
        self.wait_replaced(sallyport, "egress worker 0", killed)
        self.echo(tunnels[1])
        self.assertEqual(sallyport.wait_audit(event="end", ending="worker-died")[0]["host"], "allowed.test")
        self.assertEqual(sallyport.wait_audit(event="child-ended")[0]["child"], "egress worker 0")
        self.open_on_both(sallyport)

    def test_killed_only_worker(self):
        sallyport = self.start(workers=1)
        for _ in range(3):
            killed = self.kill(sallyport, "egress worker 0")
            self.new_tunnel_in_time(sallyport)
            self.wait_replaced(sallyport, "egress worker 0", killed)

    def test_killed_resolver(self):
        sallyport = self.start()
        _, client = self.open(sallyport)
        killed = self.kill(sallyport, "resolver")
        self.new_tunnel_in_time(sallyport)
        self.new_tunnel_in_time(sallyport, f"127.0.0.1:{self.origin.port}")
        self.echo(client)
        self.wait_replaced(sallyport, "resolver", killed)

    def test_killed_parent(self):
        sallyport = self.start()
        _, client = self.open(sallyport)
        children = sallyport.children()
        self.assertEqual(len(children), 3)
        os.kill(sallyport.pid(), signal.SIGKILL)
        wait_until(lambda: not any(map(harness.is_alive, children.values())), "the children to end", 5)
        self.assertIn(self.end_of(client), ("end", "reset"))
        sallyport.exit_code = -signal.SIGKILL

    @staticmethod
    def end_of(client):
        return "reset" if harness.is_reset(client) else "end"

    def test_orderly_end(self):
        """Tunnels may end within drain_timeout; new connections are refused at once."""
        sallyport = self.start()
        _, client = self.open(sallyport)
        sallyport.process.send_signal(signal.SIGTERM)
        sallyport.wait_log("no new connections")
        wait_until(lambda: not harness.accepts(sallyport.port), "the listener to close")
        self.echo(client)
        client.close()
        self.assertEqual(sallyport.process.wait(harness.PATIENCE_S), 0)
        self.assertEqual(sallyport.audit(event="stop")[0]["exit_code"], 0)

    def test_second_signal_ends_at_once(self):
        sallyport = self.start(limits={"drain_timeout": "5m"})
        _, client = self.open(sallyport)
        self.echo(client)
        sallyport.process.send_signal(signal.SIGTERM)
        sallyport.wait_log("no new connections")
        sallyport.process.send_signal(signal.SIGTERM)
        self.assertEqual(sallyport.process.wait(harness.PATIENCE_S), 0)
        self.is_cut(sallyport, client)

    def is_cut(self, sallyport, client):
        """Nobody takes half a file for a whole one, and the log says whose tunnel it was."""
        self.assertEqual(self.end_of(client), "reset")
        self.assertEqual(sallyport.audit(event="end")[0]["ending"], "cut")
        self.assertEqual(sallyport.audit(event="end")[0]["bytes_up"], 4)

    def test_end_of_patience(self):
        sallyport = self.start(limits={"drain_timeout": "1s"})
        _, client = self.open(sallyport)
        self.echo(client)
        sallyport.process.send_signal(signal.SIGTERM)
        self.assertEqual(sallyport.process.wait(harness.PATIENCE_S), 0)
        self.is_cut(sallyport, client)

    def test_end_with_a_stopped_worker(self):
        """One that does not take the order is killed after a moment."""
        sallyport = self.start(limits={"drain_timeout": "1s"})
        _, client = self.open(sallyport)
        stopped = sallyport.children()["egress worker 0"]
        os.kill(stopped, signal.SIGSTOP)
        sallyport.process.send_signal(signal.SIGTERM)
        self.assertEqual(sallyport.process.wait(harness.PATIENCE_S), 0)
        self.assertFalse(harness.is_alive(stopped))


class Listeners(unittest.TestCase):
    """A worker that cannot take a client must not be the one that is woken for it."""

    CREDIT = 2048  # shared/limits.h

    def start(self, **settings):
        origin = self.enterContext(EchoOrigin())
        self.target = f"allowed.test:{origin.port}"
        return self.enterContext(
            harness.Sallyport(
                allow=[entry("allowed.test", origin.port), "slow.test"], hosts=["127.0.0.1 allowed.test"], **settings
            )
        )

    def test_every_place_is_found(self):
        workers = 4
        sallyport = self.start(workers=workers, limits={"connections_per_listener": workers})
        for _ in range(5):
            clients = [tunnel(sallyport.port, self.target) for _ in range(workers)]
            self.assertEqual(sallyport.counters()["tunnels_open"], workers)
            with connect(sallyport.port, "denied.test:443") as waiting:
                for client in clients:
                    client.close()
                self.assertIn(" 403 ", read_head(waiting), "it is served when a place is free")
            sallyport.wait_counter("sessions_open", 0)

    def test_a_worker_without_credit(self):
        silent = self.enterContext(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        silent.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        sallyport = self.start(nameservers=[server], limits={"dns_timeout": "60s", "head_timeout": "60s"})
        slow = contextlib.ExitStack()
        self.addCleanup(slow.close)
        with sallyport.only_worker(0):
            clients = [
                slow.enter_context(socket.create_connection(("127.0.0.1", sallyport.port)))
                for _ in range(self.CREDIT + 10)
            ]
            sallyport.wait_counter("sessions_open", len(clients) + 1)
        for client in clients:
            client.sendall(b"CONNECT slow.test:443 HTTP/1.1\r\nHost: slow.test:443\r\n\r\n")
        sallyport.wait_counter("asks_open", self.CREDIT)
        for _ in range(20):
            with connect(sallyport.port, self.target, timeout=5) as client:
                self.assertIn(" 200 ", read_head(client))


class Log(unittest.TestCase):
    def test_nobody_reads_it(self):
        """A pipe that is full holds up no client; what was left out is said when there is room again."""

        class Unread(harness.Sallyport):
            may_read = threading.Event()

            def read_log(self, stream):
                fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, 4096)
                self.may_read.wait(harness.PATIENCE_S * 4)
                super().read_log(stream)

        with Unread(allow=["example.org"], limits={"drain_timeout": "5s"}) as sallyport:
            self.addCleanup(sallyport.may_read.set)
            for _ in range(500):
                line, _, _ = refusal(sallyport.port, "denied.test:443")
                self.assertIn(" 403 ", line)
            sallyport.may_read.set()

            def told():
                refusal(sallyport.port, "denied.test:443")  # the first line of a new second says what went before
                return sallyport.find_log("lines were left out: the log was not read")

            wait_until(told, "a word about the lines that are missing")


class Audit(unittest.TestCase):
    def small_disk(self):
        folder = self.enterContext(harness.Folder())
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "sallyport-test", folder],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            self.skipTest("a small file system cannot be mounted: " + mounted.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def start(self, path=None):
        self.origin = self.enterContext(EchoOrigin())
        self.target = f"allowed.test:{self.origin.port}"
        return self.enterContext(
            harness.Sallyport(
                allow=[entry("allowed.test", self.origin.port)], hosts=["127.0.0.1 allowed.test"], audit=path
            )
        )

    def status(self, sallyport):
        with connect(sallyport.port, self.target) as client:
            return read_head(client)

    @unittest.skipUnless(harness.IS_ROOT and shutil.which("mount"), "mounting needs root")
    def test_full_disk(self):
        folder = self.small_disk()
        path = os.path.join(folder, "audit.jsonl")
        sallyport = self.start(path)
        sallyport.expect("audit log .* cannot be written")
        standing = tunnel(sallyport.port, self.target)
        self.addCleanup(standing.close)
        filler = os.path.join(folder, "filler")
        with open(filler, "wb", 0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        # The last page of the log still has room.
        head = wait_until(lambda: next((h for h in [self.status(sallyport)] if " 200 " not in h), None), "a refusal")
        self.assertTrue(head.startswith("HTTP/1.1 503 "), head)
        self.assertIn("\r\nX-Proxy-Error: audit-unavailable\r\n", head)
        self.assertIn("\r\nRetry-After: ", head)
        self.assertIn("\r\nX-Proxy-Error: audit-unavailable\r\n", self.status(sallyport))
        standing.sendall(b"unhurt")
        self.assertEqual(read_exactly(standing, 6), b"unhurt")
        os.unlink(filler)
        wait_until(lambda: " 200 " in self.status(sallyport), "the service to resume")
        sallyport.wait_log("can be written again")
        sallyport.audit()  # no partial line stands in it
        standing.close()

    def test_removed_file(self):
        sallyport = self.start()
        self.assertIn(" 200 ", self.status(sallyport))
        os.unlink(sallyport.audit_path)
        if harness.IS_ROOT or os.access(sallyport.folder, os.W_OK):
            self.assertIn(" 200 ", self.status(sallyport))
            self.assertEqual(len(sallyport.audit(event="grant")), 1, "its record is in the new file")

    def test_unwritable_at_the_start(self):
        sallyport = harness.Sallyport(allow=["example.org"], audit="/nowhere/audit.jsonl")
        with self.assertRaisesRegex(AssertionError, "cannot be opened"):
            sallyport.start()
        self.assertEqual(sallyport.process.returncode, 1)
        sallyport.discard()

    def test_refusals_have_records_first(self):
        """The record is there when the client has its answer."""
        sallyport = self.start()
        for number in range(1, 20):
            refusal(sallyport.port, "denied.test:443")
            self.assertEqual(len(sallyport.audit(event="refusal")), number)


if __name__ == "__main__":
    unittest.main()
