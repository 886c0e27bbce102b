"""CONNECT: answers, half-open tunnels, resets, capture, abandonment, bounds, records."""

import errno
import select
import socket
import time
import unittest

import harness
from harness import connect, entry, read_all, read_exactly, read_head, refusal, reset, tunnel
from origins import EchoOrigin, HangingPort, TcpOrigin

HOSTS = ["127.0.0.1 allowed.test closed.test", "169.254.169.254 meta.test", "10.1.2.3 private.test"]
CAPTURE_BYTES = 65536


class Answers(unittest.TestCase):
    def setUp(self):
        self.origin = self.enterContext(EchoOrigin())
        self.sallyport = harness.Sallyport(
            allow=[
                entry("allowed.test", self.origin.port, 1),
                f"meta.test:{self.origin.port}",
                f"private.test:{self.origin.port}",
                "nowhere.test:80",
            ],
            deny=["gist.test"],
            message="Ask in #egress.",
            hosts=HOSTS,
        )
        self.enterContext(self.sallyport)

    def refused(self, target):
        return refusal(self.sallyport.port, target)

    def test_allowed(self):
        with tunnel(self.sallyport.port, f"allowed.test:{self.origin.port}") as client:
            client.sendall(b"ping")
            self.assertEqual(read_exactly(client, 4), b"ping")
        grant = self.sallyport.wait_audit(event="grant")[0]
        self.assertEqual((grant["host"], grant["port"]), ("allowed.test", self.origin.port))
        self.assertEqual(grant["verdict"], "allow")
        self.assertEqual(grant["address"], f"127.0.0.1:{self.origin.port}")
        self.assertEqual(grant["policy"], "test")
        self.assertRegex(grant["rule"], r"sallyport\.yaml:\d+$")
        self.assertRegex(grant["client"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(grant["listener"], f"127.0.0.1:{self.sallyport.port}")
        end = self.sallyport.wait_audit(session=grant["session"], event="end")[0]
        self.assertEqual((end["bytes_up"], end["bytes_down"]), (4, 4))
        self.assertEqual((end["ending"], end["reported_by"]), ("finished", "worker"))

    def test_allowlist_miss(self):
        line, fields, body = self.refused("denied.test:443")
        self.assertEqual(line, "HTTP/1.1 403 Blocked by allowlist: denied.test:443")
        self.assertEqual(fields["x-proxy-error"], "blocked-by-allowlist")
        self.assertEqual(fields["content-type"], "text/plain; charset=utf-8")
        self.assertEqual(fields["x-content-type-options"], "nosniff")
        self.assertIn("http_request_denied", fields["proxy-status"])
        self.assertIn("denied.test:443", body)
        self.assertIn("Ask in #egress.", body)
        record = self.sallyport.wait_audit(event="refusal")[0]
        self.assertEqual((record["host"], record["port"]), ("denied.test", 443))
        self.assertEqual((record["verdict"], record["reason"]), ("deny", "blocked-by-allowlist"))
        self.assertIsNone(record["rule"])

    def test_deny_rule(self):
        line, _, body = self.refused("gist.test:443")
        self.assertEqual(line, "HTTP/1.1 403 Blocked by allowlist: gist.test:443")
        self.assertIn("gist.test", body)
        self.assertRegex(self.sallyport.wait_audit(event="refusal")[0]["rule"], r"sallyport\.yaml:\d+$")

    def test_forbidden_class(self):
        for name, kind in (("meta.test", "metadata"), ("private.test", "private")):
            line, fields, body = self.refused(f"{name}:{self.origin.port}")
            self.assertEqual(line, f"HTTP/1.1 403 Blocked address: {name}:{self.origin.port}")
            self.assertEqual(fields["x-proxy-error"], "blocked-address")
            self.assertIn(kind, body)
            self.assertNotIn("169.254", body)
            self.assertNotIn("10.1.2.3", body)

    def test_dial_refused(self):
        line, fields, _ = self.refused("allowed.test:1")
        self.assertEqual(line, "HTTP/1.1 502 Connection refused: allowed.test:1")
        self.assertEqual(fields["x-proxy-error"], "connection-refused")
        self.assertEqual(self.sallyport.wait_audit(event="refusal")[0]["verdict"], "fail")

    def test_malformed(self):
        with socket.create_connection(("127.0.0.1", self.sallyport.port), 10) as client:
            client.sendall(b"CONNECT allowed.test:1 HTTP/1.1\nHost: allowed.test\r\n\r\n")
            self.assertTrue(read_head(client).startswith("HTTP/1.1 400 "))
            read_all(client)
        self.sallyport.wait_audit(reason="bad-request")

    def test_hostile_bytes_in_records(self):
        """Whatever the host is, the log keeps one printable line per event (audit() looks at every byte)."""
        for target in (b'a"b,\\:80', b"\x00\x01\x7f\x80\xff:80", b"a\tb:80", b"-" * 300 + b":80", b"<script>:80"):
            with socket.create_connection(("127.0.0.1", self.sallyport.port), 10) as client:
                client.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertRegex(read_head(client), r"^HTTP/1\.1 40[03] ")
        self.sallyport.wait_audit(5, event="worker-refusal")
        for line in self.sallyport.log:
            self.assertTrue(line.isprintable() and line.startswith("time="), line)


class OwnListener(unittest.TestCase):
    def test_is_never_a_destination(self):
        with harness.Sallyport(allow=["127.0.0.0/8:1-65535", "[::1]:1-65535"]) as sallyport:
            line, fields, _ = refusal(sallyport.port, f"127.0.0.1:{sallyport.port}")
            self.assertEqual(line, f"HTTP/1.1 403 Blocked address: 127.0.0.1:{sallyport.port}")
            self.assertEqual(fields["x-proxy-error"], "blocked-address")
            line, _, _ = refusal(sallyport.port, f"127.0.0.2:{sallyport.port}")
            self.assertEqual(line.split()[1], "502", "another address with the same port is somebody else's")


class Tunnels(unittest.TestCase):
    def setUp(self):
        self.origin = self.enterContext(TcpOrigin())
        self.sallyport = self.enterContext(
            harness.Sallyport(allow=[entry("allowed.test", self.origin.port)], hosts=HOSTS)
        )
        self.target = f"allowed.test:{self.origin.port}"

    def open(self, early=b""):
        client = tunnel(self.sallyport.port, self.target, early)
        self.addCleanup(client.close)
        upstream = self.origin.accept()
        self.addCleanup(upstream.close)
        return client, upstream

    def ending(self):
        return self.sallyport.wait_audit(event="end")[0]

    def test_client_closes_first(self):
        client, upstream = self.open()
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(upstream), b"question")
        upstream.sendall(b"answer" * 100000)
        upstream.close()
        self.assertEqual(read_all(client), b"answer" * 100000)
        self.assertEqual(self.ending()["ending"], "finished")

    def test_upstream_closes_first(self):
        client, upstream = self.open()
        upstream.sendall(b"greeting")
        upstream.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(client), b"greeting")
        client.sendall(b"still talking" * 100000)
        client.close()
        self.assertEqual(read_all(upstream), b"still talking" * 100000)
        self.assertEqual(self.ending()["ending"], "finished")

    def test_client_resets(self):
        client, upstream = self.open()
        reset(client)
        self.assertTrue(harness.is_reset(upstream))
        self.assertEqual(self.ending()["ending"], "client-reset")

    def test_upstream_resets(self):
        client, upstream = self.open()
        reset(upstream)
        self.assertTrue(harness.is_reset(client))
        self.assertEqual(self.ending()["ending"], "upstream-reset")

    def test_reset_after_half_close(self):
        client, upstream = self.open()
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(upstream), b"")
        reset(client)
        poll = select.poll()
        poll.register(upstream, select.POLLERR)
        self.assertTrue(poll.poll(harness.PATIENCE_S * 1000), "the reset is passed on")
        # What Linux makes of a reset that follows an end of stream.
        self.assertEqual(upstream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.EPIPE)

    def test_early_bytes_come_first(self):
        early = bytes(range(256)) * (CAPTURE_BYTES // 256 // 2)
        client, upstream = self.open(early)
        client.sendall(b"later")
        self.assertEqual(read_exactly(upstream, len(early) + 5), early + b"later")

    def test_bulk_both_ways(self):
        """Enough to be spliced, with a reader that pauses."""
        size = 16 << 20
        client, upstream = self.open()
        block = bytes(range(256)) * 4096
        for source, sink in ((client, upstream), (upstream, client)):
            sent = received = 0
            source.setblocking(False)
            sink.settimeout(10)
            while received < size:
                try:
                    while sent < size:
                        sent += source.send(block[sent % len(block) :][: size - sent])
                except BlockingIOError:
                    pass
                piece = sink.recv(1 << 20)
                self.assertTrue(piece)
                position = received % len(block)
                self.assertEqual(piece, (block + block)[position : position + len(piece)])
                received += len(piece)
            source.setblocking(True)
        client.close()
        upstream.close()
        end = self.ending()
        self.assertEqual((end["bytes_up"], end["bytes_down"]), (size, size))
        self.assertGreater(self.sallyport.counters()["spliced_bytes"], 0)


class Pending(unittest.TestCase):
    """Before the tunnel is there."""

    def setUp(self):
        self.port = self.enterContext(HangingPort())
        self.sallyport = self.enterContext(
            harness.Sallyport(allow=[entry("allowed.test", self.port.port)], hosts=HOSTS)
        )
        self.target = f"allowed.test:{self.port.port}"

    def pending(self, early=b""):
        client = connect(self.sallyport.port, self.target, early)
        self.addCleanup(client.close)
        harness.wait_until(self.port.attempts, "the dial")
        return client

    def test_capture_cap(self):
        client = self.pending(b"x" * CAPTURE_BYTES)
        self.assertEqual(self.port.attempts(), 1)
        client.sendall(b"y")
        with self.subTest("the connection is destroyed without an answer"):
            try:
                self.assertEqual(read_all(client), b"")
            except ConnectionResetError:
                pass
        self.sallyport.wait_log("CONNECT client exceeded pre-establishment capture cap; destroying")
        harness.wait_until(lambda: self.port.attempts() == 0, "the dial to be abandoned")
        self.assertEqual(self.sallyport.counters()["capture_exceeded"], 1)

    def test_client_gives_up(self):
        for leave in (socket.socket.close, reset, lambda client: client.shutdown(socket.SHUT_WR)):
            client = self.pending()
            leave(client)
            harness.wait_until(lambda: self.port.attempts() == 0, "the dial to be abandoned")
        self.sallyport.wait_audit(3, event="abandoned")
        self.assertEqual(read_all(client), b"")
        self.assertEqual(self.sallyport.audit(event="grant"), [])


class Bounds(unittest.TestCase):
    def start(self, origin, **limits):
        sallyport = harness.Sallyport(allow=[entry("allowed.test", origin.port)], hosts=HOSTS, limits=limits)
        return self.enterContext(sallyport)

    def test_idle_tunnel(self):
        origin = self.enterContext(TcpOrigin())
        sallyport = self.start(origin, tunnel_idle="300ms")
        with tunnel(sallyport.port, f"allowed.test:{origin.port}") as client, origin.accept() as upstream:
            started = time.monotonic()
            harness.is_reset(client)
            harness.is_reset(upstream)
            self.assertGreater(time.monotonic() - started, 0.2)
        self.assertEqual(sallyport.wait_audit(event="end")[0]["ending"], "idle-timeout")

    def test_half_open_tunnel(self):
        origin = self.enterContext(TcpOrigin())
        sallyport = self.start(origin, half_open_idle="300ms")
        with tunnel(sallyport.port, f"allowed.test:{origin.port}") as client, origin.accept() as upstream:
            client.shutdown(socket.SHUT_WR)
            harness.is_reset(client)
            harness.is_reset(upstream)
        self.assertEqual(sallyport.wait_audit(event="end")[0]["ending"], "half-open-timeout")

    def test_slow_head(self):
        origin = self.enterContext(TcpOrigin())
        sallyport = self.start(origin, head_timeout="300ms")
        with socket.create_connection(("127.0.0.1", sallyport.port), 10) as client:
            client.sendall(b"CONNECT allow")
            self.assertTrue(read_head(client).startswith("HTTP/1.1 408 "))
        with socket.create_connection(("127.0.0.1", sallyport.port), 10) as client:
            self.assertEqual(read_all(client), b"", "total silence is closed without a word")

    def test_slow_dial(self):
        port = self.enterContext(HangingPort())
        sallyport = self.start(port, dial_timeout="300ms")
        line, fields, _ = refusal(sallyport.port, f"allowed.test:{port.port}")
        self.assertEqual(line, f"HTTP/1.1 504 Connection timed out: allowed.test:{port.port}")
        self.assertEqual(fields["x-proxy-error"], "connection-timeout")


if __name__ == "__main__":
    unittest.main()
