"""Names, through a nameserver of the test's own that notes every question."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import read_exactly, refusal, tunnel
from origins import EchoOrigin

HERE = os.path.dirname(os.path.abspath(__file__))

ZONE = {
    "good.test": {"A": ["127.0.0.1"], "ttl": 60},
    "alias.test": {"CNAME": "good.test"},
    "truncated.test": {"A": ["127.0.0.1"], "truncate": True},
    "forged.test": {"A": ["127.0.0.1"], "wrong_ids": 3, "wrong_question": True},
    "broken.test": {"rcode": "SERVFAIL"},
    "garbage.test": {"A": ["127.0.0.1"], "garbage": True},
    "silent.test": {"silent": True},
    "empty.test": {},
    "metadata.test": {"A": ["169.254.169.254"]},
    "private.test": {"A": ["10.1.1.1"], "AAAA": ["fd00::1"]},
    "mixed.test": {"A": ["169.254.169.254", "127.0.0.1"]},
    "rebind.test": {"A": ["127.0.0.1"], "ttl": 0, "then": [{"A": ["10.1.1.1"], "ttl": 0}]},
    "denied.test": {"A": ["127.0.0.1"]},
    "gist.test": {"A": ["127.0.0.1"]},
}


class Nameserver:
    def __init__(self, zone):
        self.log = tempfile.NamedTemporaryFile("r", prefix="sallyport-test-", suffix=".log", encoding="utf-8")
        command = [sys.executable, os.path.join(HERE, "dns_server.py"), "--stdin", "--log", self.log.name]
        self.process = subprocess.Popen(
            command + [json.dumps(zone)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())

    def asked(self):
        """Names that were asked for, in order, one for each packet."""
        self.log.seek(0)
        return [json.loads(line)["name"] for line in self.log]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(harness.PATIENCE_S)
        self.process.stdout.close()
        self.log.close()


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.origin = cls.enterClassContext(EchoOrigin())
        cls.nameserver = cls.enterClassContext(Nameserver(ZONE))
        port = cls.origin.port
        strict = {"metadata.test", "private.test", "denied.test", "gist.test"}
        allow = [harness.entry(name, port) for name in ZONE if name not in strict]
        allow += [f"{name}:{port}" for name in ("metadata.test", "private.test", "absent.test", "*.wild.test")]
        cls.sallyport = cls.enterClassContext(
            harness.Sallyport(
                allow=allow,
                deny=["gist.test"],
                hosts=["127.0.0.1 file.test"],
                nameservers=[f"127.0.0.1:{cls.nameserver.port}"],
                limits={"dns_timeout": "1s"},
            )
        )

    def works(self, name):
        with tunnel(self.sallyport.port, f"{name}:{self.origin.port}") as client:
            client.sendall(b"ping")
            self.assertEqual(read_exactly(client, 4), b"ping")

    def fails(self, name, status, error):
        line, fields, body = refusal(self.sallyport.port, f"{name}:{self.origin.port}")
        self.assertEqual((line.split()[1], fields["x-proxy-error"]), (status, error))
        return body

    def test_allowed(self):
        for name in ("good.test", "alias.test", "GOOD.test.", "truncated.test", "forged.test"):
            self.works(name)

    def test_denied_names_are_never_asked(self):
        for name in ("denied.test", "gist.test", "sub.good.test", "0x7f000001", "2130706433", "127.1"):
            line, _, _ = refusal(self.sallyport.port, f"{name}:{self.origin.port}")
            self.assertEqual(line.split()[1], "403")
        line, _, _ = refusal(self.sallyport.port, "good.test:1")
        self.assertEqual(line.split()[1], "403")
        self.works("good.test")  # whatever had been asked before it is in the nameserver's log by now
        wrong = {"denied.test", "gist.test", "sub.good.test", "0x7f000001", "2130706433", "127.1"}
        self.assertEqual(set(self.nameserver.asked()) & wrong, set())

    def test_does_not_exist(self):
        self.assertIn("absent.test", self.fails("absent.test", "502", "dns-error"))
        self.fails("empty.test", "502", "dns-error")
        self.fails("broken.test", "502", "dns-error")
        self.fails("garbage.test", "502", "dns-error")

    def test_silence(self):
        self.fails("silent.test", "504", "dns-timeout")

    def test_forbidden_addresses(self):
        self.assertIn("metadata", self.fails("metadata.test", "403", "blocked-address"))
        self.fails("private.test", "403", "blocked-address")

    def test_the_good_one_of_two(self):
        self.works("mixed.test")
        grant = self.sallyport.audit(event="grant", host="mixed.test")[0]
        self.assertEqual(grant["address"], f"127.0.0.1:{self.origin.port}")

    def test_rebinding(self):
        """The second answer, a private address, is judged like the first."""
        self.works("rebind.test")
        self.fails("rebind.test", "403", "blocked-address")

    def test_cache(self):
        self.works("good.test")
        before = self.nameserver.asked().count("good.test")
        for _ in range(5):
            self.works("good.test")
        self.assertEqual(self.nameserver.asked().count("good.test"), before)

    def test_negative_cache(self):
        self.fails("a.wild.test", "502", "dns-error")
        before = self.nameserver.asked().count("a.wild.test")
        self.fails("a.wild.test", "502", "dns-error")
        self.assertEqual(self.nameserver.asked().count("a.wild.test"), before)

    def test_a_slow_name_holds_up_no_other(self):
        with harness.connect(self.sallyport.port, f"silent.test:{self.origin.port}"):
            harness.wait_until(lambda: "silent.test" in self.nameserver.asked(), "the question")
            self.works("good.test")
            self.works("truncated.test")


if __name__ == "__main__":
    unittest.main()
