"""A client that is gone when its answer is ready: counted, nothing written, no error. Shown by a trace of the worker."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import connect, entry, reset, wait_until
from origins import TcpOrigin

WRITING = "write,writev,pwrite64,sendto,sendmsg,sendmmsg,sendfile,splice,tee,vmsplice"


@unittest.skipUnless(harness.IS_ROOT, "tracing a process that is not dumpable needs root")
@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class Gone(unittest.TestCase):
    def setUp(self):
        self.origin = self.enterContext(TcpOrigin())
        self.sallyport = self.enterContext(
            harness.Sallyport(
                allow=[entry("allowed.test", self.origin.port, 1)], hosts=["127.0.0.1 allowed.test"], workers=1
            )
        )
        self.worker = self.sallyport.children()["egress worker 0"]
        self.trace_path = self.enterContext(tempfile.NamedTemporaryFile(prefix="sallyport-test-")).name
        self.start_trace()

    def start_trace(self):
        command = ["strace", "-qq", "-o", self.trace_path, "-e", f"trace={WRITING}", "-e", "signal=none", "-p"]
        tracer = subprocess.Popen(command + [str(self.worker)], stdin=subprocess.DEVNULL)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.terminate)
        status = f"/proc/{self.worker}/status"
        wait_until(lambda: f"TracerPid:\t{tracer.pid}\n" in harness.read_text(status), "the trace to begin")

    def writes(self):
        """Calls that wrote anywhere but to the channel (3) and the log (2)."""
        with open(self.trace_path, encoding="utf-8") as file:
            return [line for line in file if not re.match(r"(sendmsg\(3|sendto\(3|write\(2), ", line)]

    def asks(self):
        with open(self.trace_path, encoding="utf-8") as file:
            return len(re.findall(r"^sendmsg\(3, .*SCM_RIGHTS", file.read(), re.MULTILINE))

    def leave_before_answer(self, target, leave, event):
        """The answer and the client's end wait for the worker side by side, the answer first."""
        parent = self.sallyport.pid()
        asked, answered = self.asks(), len(self.sallyport.audit(event=event))
        os.kill(parent, signal.SIGSTOP)
        client = connect(self.sallyport.port, target)
        self.addCleanup(client.close)
        wait_until(lambda: self.asks() > asked, "the ask")
        os.kill(self.worker, signal.SIGSTOP)
        os.kill(parent, signal.SIGCONT)
        self.sallyport.wait_audit(answered + 1, event=event)
        wait_until(lambda: harness.is_sleeping(parent), "the answer to be on its way")
        leave(client)
        os.kill(self.worker, signal.SIGCONT)

    def check(self, target, event, counter):
        leavings = (
            ("close", socket.socket.close),
            ("reset", reset),
            ("end of stream", lambda client: client.shutdown(socket.SHUT_WR)),
        )
        for number, (how, leave) in enumerate(leavings, 1):
            with self.subTest(how):
                self.leave_before_answer(target, leave, event)
                self.sallyport.wait_counter("sessions_open", 0)
                counters = self.sallyport.counters()
                gone = {name: value for name, value in counters.items() if name.startswith("gone_") and value}
                self.assertEqual(gone, {counter: number})
                self.assertEqual(counters["answered_200"] + counters["answered_refusal"], 0)
                self.assertEqual(self.writes(), [])
        self.assertEqual(self.sallyport.find_log("level=(error|warning)"), [])

    def test_before_403(self):
        self.check("denied.test:443", "refusal", "gone_before_403")

    def test_before_502(self):
        self.check("allowed.test:1", "refusal", "gone_before_502")

    def test_before_200(self):
        self.check(f"allowed.test:{self.origin.port}", "grant", "gone_before_200")
        for _ in range(3):
            with self.origin.accept() as upstream:
                harness.is_reset(upstream)  # ends in some way, without a byte
        ends = self.sallyport.wait_audit(3, event="end")
        self.assertEqual({(end["ending"], end["bytes_up"], end["bytes_down"]) for end in ends}, {("client-gone", 0, 0)})

    def test_trace_shows_what_is_written(self):
        """The same trace of a client that stays: so its silence above means something."""
        harness.refusal(self.sallyport.port, "denied.test:443")
        wait_until(self.writes, "the answer in the trace")
        self.assertIn("HTTP/1.1 403", self.writes()[0])


if __name__ == "__main__":
    unittest.main()
