"""`make run`: the demo starts, what it prints works when pasted, and it ends without a trace."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import harness

DEMO = os.path.join(harness.ROOT, "packaging/demo/run")


class Demo(unittest.TestCase):
    def setUp(self):
        self.port = harness.free_port()
        self.folder = os.path.join(harness.BUILD, f"demo-{self.port}")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self):
        self.demo = subprocess.Popen(
            [DEMO], cwd=harness.ROOT, env=dict(os.environ, PORT=str(self.port), SALLYPORT_BUILD=harness.BUILD),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.addCleanup(self.demo.stdout.close)
        self.addCleanup(self.demo.stderr.close)
        self.addCleanup(self.kill_rest)
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.demo.stderr), daemon=True)
        self.reader.start()

    def kill_rest(self):
        if self.demo.poll() is None:
            os.killpg(self.demo.pid, signal.SIGKILL)
            self.demo.wait()

    def read_text(self):
        lines = []
        for line in self.demo.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                return "".join(lines)
        self.demo.wait()
        self.reader.join(harness.PATIENCE_S)
        self.fail("the demo ended:\n" + "".join(self.log))

    def test_what_it_prints_can_be_pasted(self):
        self.start()
        text = self.read_text()
        export, allowed, denied, check = re.findall(r"^    (\S.*)$", text, re.MULTILINE)
        environment = {"PATH": os.environ["PATH"], "HOME": self.folder}

        def paste(*lines):
            return subprocess.run(
                ["sh", "-c", "\n".join(lines)], cwd=harness.ROOT, env=environment, capture_output=True, text=True,
                timeout=60, check=False,
            )  # fmt: skip

        done = paste(export, allowed)
        self.assertEqual((done.returncode, done.stdout), (0, "You reached the demo's origin through Sallyport.\n"))
        done = paste(export, denied)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("HTTP/1.1 403 Blocked by allowlist: denied.example.org:443", done.stdout)
        self.assertIn("X-Proxy-Error: blocked-by-allowlist", done.stdout)
        done = paste(export, check)
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("deny denied.example.org:443", done.stdout)

        everybody = harness.descendants(self.demo.pid)
        self.assertGreaterEqual(len(everybody), 3)
        os.killpg(self.demo.pid, signal.SIGINT)  # what Ctrl-C does
        self.assertEqual(self.demo.wait(harness.PATIENCE_S), 0)
        harness.wait_until(lambda: not any(map(harness.is_alive, everybody)), "everything to end")
        self.reader.join(harness.PATIENCE_S)
        self.assertTrue(any("confinement in force" in line for line in self.log))

    def test_killed_script_leaves_nothing(self):
        self.start()
        self.read_text()
        everybody = harness.descendants(self.demo.pid)
        self.demo.kill()
        harness.wait_until(lambda: not any(map(harness.is_alive, everybody)), "everything to end")

    def test_busy_port(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", self.port))
            holder.listen()
            self.start()
            self.assertEqual(self.demo.wait(harness.PATIENCE_S), 1)
            self.reader.join(harness.PATIENCE_S)
            said = "".join(self.log)
        self.assertIn(f"127.0.0.1:{self.port}", said)
        self.assertIn(f"pid {os.getpid()}", said)
        self.assertIn("make run PORT=", said)

    def test_wrong_port(self):
        for port in ("0", "65536", "x"):
            done = subprocess.run([DEMO], env=dict(os.environ, PORT=port), capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
