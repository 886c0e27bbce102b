#!/usr/bin/env python3
"""Runs the end-to-end tests: each file in a process of its own, two at a time; one line per test, then the sum.

    tests/e2e/run.py [FILE...]     without FILE: every test_*.py and *_test.py here. SALLYPORT_BUILD names the binaries.
"""

import collections
import concurrent.futures
import glob
import io
import os
import re
import subprocess
import sys
import time
import unittest

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
AT_ONCE = 2
FILE_TIMEOUT_S = 900
LINE = re.compile(r"^(ok|FAILED|skipped) ")


class Result(unittest.TestResult):
    """One line per test; what a failed one printed and why it failed under it."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream
        self.buffer = True
        self.failed_now = []

    def startTest(self, test):
        super().startTest(test)
        self.failed_now = []
        self.started = time.monotonic()

    def say(self, word, test, more=""):
        name = test.id().replace("__main__.", "") if hasattr(test, "id") else str(test)
        self.stream.write(f"{word} {name}{more}\n")
        self.stream.flush()

    def note(self, test, error):
        printed = self._stdout_buffer.getvalue() if self._stdout_buffer else ""
        logs = [line for sallyport in harness.Sallyport.running for line in sallyport.last_words()]
        self.failed_now.append("\n".join([printed + self._exc_info_to_string(error, test), *logs]))
        if not isinstance(test, unittest.TestCase):  # a set-up of a class or a file
            self.finish(test)

    def addError(self, test, err):
        self.note(test, err)

    def addFailure(self, test, err):
        self.note(test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.note(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say("skipped", test, f": {reason}")

    def finish(self, test):
        self.say("FAILED", test)
        for text in self.failed_now:
            self.stream.write("".join(f"    {line}\n" for line in text.splitlines()))

    def stopTest(self, test):
        if self.failed_now:
            self.finish(test)
        elif not any(skipped is test for skipped, _ in self.skipped):
            self.say("ok", test, f" ({time.monotonic() - self.started:.1f} s)")
        super().stopTest(test)


def run_inside(path):
    """In the process of one file."""
    sys.path[:0] = [os.path.dirname(os.path.abspath(path)), HERE]
    name = os.path.splitext(os.path.basename(path))[0]
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    suite.run(Result(io.TextIOWrapper(os.fdopen(os.dup(1), "wb", 0), write_through=True)))


def run_file(path):
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    build = environment.get("SALLYPORT_BUILD")
    if build:
        environment.setdefault("SALLYPORT_RESOLVER", os.path.join(build, "sallyport-resolver"))
    command = [sys.executable, os.path.abspath(__file__), "--inside", path]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=FILE_TIMEOUT_S, check=False,
        )  # fmt: skip
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        output, status = (late.stdout or b""), "no end in time"
    text = output.decode("utf-8", "backslashreplace")
    counts = collections.Counter(match.group(1) for match in map(LINE.match, text.splitlines()) if match)
    if status != 0 or not counts:
        text += f"FAILED {os.path.basename(path)}: ended with {status}\n"
        counts["FAILED"] += 1
    return text, counts


def main(arguments):
    if arguments[:1] == ["--inside"]:
        run_inside(arguments[1])
        return 0
    files = arguments or sorted(glob.glob(f"{HERE}/test_*.py") + glob.glob(f"{HERE}/*_test.py"))
    sums = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for task in concurrent.futures.as_completed([pool.submit(run_file, path) for path in files]):
            text, counts = task.result()
            print(text, end="", flush=True)
            sums += counts
    skipped = f", {sums['skipped']} skipped" if sums["skipped"] else ""
    print(f"{sums['ok']} passed, {sums['FAILED']} failed{skipped}")
    return 1 if sums["FAILED"] else 0


sys.exit(main(sys.argv[1:]))
