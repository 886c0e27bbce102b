"""The command line: check, check-config, run: what they say, and how they end."""

import os
import socket
import subprocess
import tempfile
import unittest

import harness

ALLOWED, USAGE, CONFIGURATION, DENIED = 0, 2, 3, 10

GOOD = """\
user: nobody
audit: audit.jsonl
resolver:
  hosts_file: hosts
policies:
  - name: first
    allow:
      - allowed.test
      - { host: db.test, ports: [5432], resolves_to: [10.20.0.0/16] }
      - meta.test
      - list: base.list
    deny:
      - gist.test
  - name: second
    allow: [ second.test ]
egress:
  - listen: 127.0.0.1:3128
    policy: first
"""

BAD = """\
user: nobody
colour: red
policies:
  - name: first
    allow:
      - 10.0.0.999
      - allowed.test:0
egress:
  - listen: 127.0.0.1:3128
    policy: absent
"""


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="sallyport-test-"))
        self.write("good.yaml", GOOD)
        self.write("bad.yaml", BAD)
        self.write("base.list", "# a list\nlisted.test:8443\n")
        self.write("hosts", "10.20.1.1 db.test\n169.254.169.254 meta.test\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_command(self, *words):
        command = [os.path.join(harness.BUILD, "sallyport"), *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stdout, done.stderr

    def check(self, *words):
        return self.run_command("check", "-c", "good.yaml", *words)

    def test_check_config_good(self):
        code, said, complaints = self.run_command("check-config", "-c", "good.yaml")
        self.assertEqual((code, complaints), (0, ""))
        self.assertIn("good.yaml: ok", said)

    def test_check_config_says_every_error_at_once(self):
        code, _, complaints = self.run_command("check-config", "-c", "bad.yaml")
        self.assertEqual(code, CONFIGURATION)
        places = [line.split(": error: ")[0] for line in complaints.splitlines()]
        self.assertEqual(places, ["bad.yaml:2", "bad.yaml:6", "bad.yaml:7", "bad.yaml:10"])

    def test_check_config_list_file(self):
        self.write("base.list", "listed.test\nbad entry here\n")
        code, _, complaints = self.run_command("check-config", "-c", "good.yaml")
        self.assertEqual(code, CONFIGURATION)
        self.assertIn("base.list:2: error: ", complaints)

    def test_check_config_absent_file(self):
        self.assertEqual(self.run_command("check-config", "-c", "absent.yaml")[0], CONFIGURATION)

    def test_check_allow(self):
        for target, place in (("allowed.test", "good.yaml:8"), ("listed.test:8443", "base.list:2")):
            code, said, _ = self.check(target)
            self.assertEqual(code, ALLOWED, said)
            self.assertTrue(said.startswith("allow "), said)
            self.assertIn(place, said)

    def test_check_names_the_class(self):
        code, said, _ = self.check("db.test:5432")
        self.assertEqual(code, ALLOWED)
        self.assertIn("10.20.1.1", said)
        self.assertIn("private", said)
        code, said, _ = self.check("meta.test")
        self.assertEqual(code, DENIED)
        self.assertIn("cloud metadata", said)

    def test_check_deny(self):
        code, said, _ = self.check("gist.test:22")
        self.assertEqual(code, DENIED)
        self.assertIn("good.yaml:13", said)
        code, said, _ = self.check("allowed.test:22")
        self.assertEqual(code, DENIED)
        self.assertIn('"allowed.test:22"', said, "what would permit it")

    def test_check_policy(self):
        self.assertEqual(self.check("second.test")[0], DENIED)
        self.assertEqual(self.check("--policy", "second", "second.test")[0], ALLOWED)
        self.assertEqual(self.check("--policy", "absent", "second.test")[0], USAGE)

    def test_check_usage(self):
        self.assertEqual(self.check()[0], USAGE)
        self.assertEqual(self.check("a", "b")[0], USAGE)
        self.assertEqual(self.check("user@allowed.test")[0], USAGE)
        self.assertEqual(self.check("--colour", "allowed.test")[0], USAGE)
        self.assertEqual(self.run_command("check", "-c", "bad.yaml", "allowed.test")[0], CONFIGURATION)

    def test_run_usage(self):
        self.assertEqual(self.run_command()[0], USAGE)
        self.assertEqual(self.run_command("walk")[0], USAGE)
        self.assertEqual(self.run_command("run", "--ready-fd", "9")[0], USAGE)
        self.assertEqual(self.run_command("run", "surplus")[0], USAGE)
        self.assertEqual(self.run_command("--help")[0], 0)

    def test_run_broken_configuration(self):
        code, _, complaints = self.run_command("run", "-c", "bad.yaml")
        self.assertEqual(code, CONFIGURATION)
        self.assertIn("bad.yaml:2: error: ", complaints)

    def test_run_busy_port(self):
        """The holder is named."""
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            mode = "required" if harness.IS_ROOT else "best-effort"
            self.write("busy.yaml", f"confinement: {mode}\n" + GOOD.replace(":3128", f":{port}"))
            code, _, complaints = self.run_command("run", "-c", "busy.yaml")
        self.assertEqual(code, 1)
        self.assertIn(f"127.0.0.1:{port}", complaints)
        self.assertIn(f"pid {os.getpid()}", complaints)

    def test_check_agrees_with_the_daemon(self):
        """The same words to both: the same verdict."""
        with harness.Sallyport(
            allow=["203.0.113.0/24:80", "*.wild.test:1-1024", "127.0.0.1:9", "one.test:81,83"],
            deny=["no.wild.test", "*:22", "203.0.113.7"],
            hosts=["127.0.0.1 one.test a.wild.test"],
        ) as sallyport:
            targets = "a.wild.test:80 wild.test:80 no.wild.test:80 a.wild.test:22 a.wild.test:1025 203.0.113.7:80 " \
                      "203.0.114.1:80 one.test:82 one.test:81 2130706433:80 127.0.0.1:80 169.254.169.254:80 [::1]:80"
            for target in targets.split():
                code, said, _ = self.run_command("check", "-c", sallyport.config_path, target)
                line, _, _ = harness.refusal(sallyport.port, target)
                self.assertEqual(code == DENIED, line.split()[1] == "403", (target, said, line))


if __name__ == "__main__":
    unittest.main()
