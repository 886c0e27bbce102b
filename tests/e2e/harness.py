"""Starts Sallyport for a test, with a configuration of its own, and looks at it from outside.

Everything a test starts ends with it, and `Sallyport.stop` complains about what was left behind: processes, files, ports,
errors in the log.
"""

import array
import contextlib
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SALLYPORT_BUILD", os.path.join(ROOT, "build"))
BINARIES = ("sallyport", "sallyport-worker", "sallyport-resolver")
PATIENCE_S = 30  # for what must happen; sanitizers and busy machines are slow
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
OTHER_GROUP = 100  # a supplementary group, which an ordinary user's child cannot drop

# Looking for leaks at the end means tracing oneself, which the parent's filter forbids; unit tests look for them.
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


# -- small things --------------------------------------------------------------------------------


def wait_until(condition, what, patience=PATIENCE_S):
    """For what has no event to wait for (/proc, files). Returns the condition's value once it is true."""
    deadline = time.monotonic() + patience
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience} s in vain for {what}")
        pause.wait(0.01)


def free_port():
    """A port below the ephemeral range, so that no outgoing connection takes it meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        low = int(file.read().split()[0])
    while True:
        port = random.SystemRandom().randrange(10000, max(low, 20000))
        with socket.socket() as probe:
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def find_command(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")


def descendants(pid):
    """Pids of children, their children and so on; children of every thread count."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            for child in map(int, file.read().split()):
                found += [child] + descendants(child)
    return found


def command_line(pid):
    return read_text(f"/proc/{pid}/cmdline").rstrip("\0").replace("\0", " ")


def read_text(path):
    """Empty when it cannot be read."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def state_of(pid):
    return read_text(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()[:1]


def is_sleeping(pid):
    return state_of(pid) == ["S"]


def is_alive(pid):
    """Running; a zombie is not."""
    return state_of(pid) not in ([], ["Z"], ["X"])


class Folder:
    """A temporary folder that other users can pass through."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="sallyport-test-")
        os.chmod(self.path, 0o755)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def entry(host, *ports, resolves_to="127.0.0.1/32"):
    """An allow entry for a name that is on loopback."""
    return {"host": host, "ports": list(ports), "resolves_to": [resolves_to]}


# -- Sallyport -----------------------------------------------------------------------------------


class Sallyport:
    """One instance. Keywords with their defaults are the configuration; `rootless`: as an ordinary user, best-effort.

    allow, deny: entries, strings or mappings; hosts: lines of its hosts file; limits: mapping; binaries: folder they are
    taken from; prefix: words before the command (a tracer).
    """

    running = []  # whose log a failed test shows

    def __init__(
        self,
        allow=(),
        deny=(),
        message="",
        hosts=(),
        nameservers=None,
        limits=None,
        workers=2,
        log_level="debug",
        audit=None,
        rootless=not IS_ROOT,
        binaries=BUILD,
        prefix=(),
    ):
        self.allow, self.deny, self.message, self.hosts = list(allow), list(deny), message, list(hosts)
        self.nameservers, self.workers, self.log_level = nameservers, workers, log_level
        self.limits = {"drain_timeout": "5s", **(limits or {})}
        self.rootless, self.binaries, self.prefix = rootless, binaries, list(prefix)
        self.folder = tempfile.mkdtemp(prefix="sallyport-test-")
        os.chmod(self.folder, 0o755)
        self.audit_path = audit or os.path.join(self.folder, "audit.jsonl")
        self.config_path = os.path.join(self.folder, "sallyport.yaml")
        self.port = 0
        self.process = None
        self.log = []
        self.log_changed = threading.Condition()
        self.exit_code = 0  # what stop() wants
        self.expected = []
        self.seen = set()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.discard()
        else:
            self.stop()

    # starting

    def configuration(self):
        mode = "best-effort" if self.rootless else "required"
        # A closed port: a name that is not in the hosts file gets an error, and nothing leaves this machine.
        servers = self.nameservers or [f"127.0.0.1:{free_port()}"]
        lines = [
            "user: nobody",
            f"confinement: {mode}",
            f"audit: {json.dumps(self.audit_path)}",
            f"log_level: {self.log_level}",
            f"workers: {self.workers}" if self.workers else "",
            "resolver:",
            f"  nameservers: {json.dumps(servers)}",
            f"  hosts_file: {self.folder}/hosts",
            "policies:",
            "  - name: test",
            "    allow:",
            *[f"      - {json.dumps(item)}" for item in self.allow],
            "    deny:" if self.deny else "",
            *[f"      - {json.dumps(item)}" for item in self.deny],
            f"    message: {json.dumps(self.message)}" if self.message else "",
            "egress:",
            f'  - listen: "127.0.0.1:{self.port}"',
            "    policy: test",
            "limits:",
            *[f"  {key}: {value}" for key, value in self.limits.items()],
        ]
        return "\n".join(line for line in lines if line) + "\n"

    def write_configuration(self):
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(self.configuration())
        with open(os.path.join(self.folder, "hosts"), "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in self.hosts))

    def make_room_for_user(self):
        """As an ordinary user: binaries where that user can read them, and a folder to write into."""
        copies = os.path.join(self.folder, "bin")
        os.mkdir(copies)
        for name in BINARIES:
            shutil.copy(os.path.join(self.binaries, name), copies)
        self.binaries = copies
        if IS_ROOT:
            os.chown(self.folder, NOBODY, NOBODY)

    def command(self, ready_fd):
        words = list(self.prefix)
        if self.rootless and IS_ROOT:
            words += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={OTHER_GROUP}"]
        binary = os.path.join(self.binaries, "sallyport")
        return words + [binary, "run", "--config", self.config_path, "--ready-fd", str(ready_fd)]

    def start(self):
        if self.rootless and self.binaries == BUILD:
            self.make_room_for_user()
        for _ in range(5):  # another copy of the tests may take the port between the look and the bind
            self.port = free_port()
            self.write_configuration()
            if self.launch():
                return self
        raise AssertionError("no port could be had")

    def launch(self):
        """True when it is ready, False when its port was taken."""
        ready, ready_child = os.pipe()
        self.process = subprocess.Popen(
            self.command(ready_child),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[ready_child],
            env=dict(os.environ, **SANITIZER),
        )
        os.close(ready_child)
        self.reader = threading.Thread(target=self.read_log, args=(self.process.stderr,), daemon=True)
        self.reader.start()
        readable, _, _ = select.select([ready], [], [], PATIENCE_S)
        said = os.read(ready, 1) if readable else b""
        os.close(ready)
        if said == b"\n":
            self.remember_processes()
            Sallyport.running.append(self)
            return True
        self.process.kill()
        self.process.wait()
        self.reader.join(PATIENCE_S)
        if any("in use" in line for line in self.log):
            self.log.clear()
            return False
        raise AssertionError("Sallyport did not start:\n" + "\n".join(self.log))

    def read_log(self, stream):
        for raw in stream:
            with self.log_changed:
                self.log.append(raw.decode("utf-8", "backslashreplace").rstrip("\n"))
                self.log_changed.notify_all()
        stream.close()

    # ending

    def remember_processes(self):
        self.seen.update(descendants(self.process.pid))

    def discard(self):
        """After a failure: everything away, no questions asked."""
        if self in Sallyport.running:
            Sallyport.running.remove(self)
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.reader.join(PATIENCE_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        try:
            if self.process.poll() is None:
                self.remember_processes()
                self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(PATIENCE_S)
            self.reader.join(PATIENCE_S)
            self.complain(code)
        except BaseException as failure:
            raise AssertionError("\n".join([str(failure), *self.last_words()])) from failure
        finally:
            self.discard()

    def last_words(self):
        return ["-- log of Sallyport", *self.log[-60:], "-- end of log"]

    def expect(self, pattern):
        """An error that this test provokes; every other one in the log is a failure."""
        self.expected.append(re.compile(pattern))

    def complain(self, code):
        assert code == self.exit_code, f"exit code {code}, not {self.exit_code}"
        wait_until(lambda: not any(map(is_alive, self.seen)), "the children to end", 5)
        left = {name for name in os.listdir(self.folder)} - {"sallyport.yaml", "hosts", "audit.jsonl", "bin"}
        assert not left, f"files left behind: {left}"
        assert not accepts(self.port), "the port is still open"
        for line in self.log:
            if re.search(r"level=error|Sanitizer|runtime error", line):
                assert any(pattern.search(line) for pattern in self.expected), f"an error in the log: {line}"

    # looking

    def find_log(self, pattern):
        expression = re.compile(pattern)
        return [line for line in self.log if expression.search(line)]

    def wait_log(self, pattern, count=1, patience=PATIENCE_S):
        """The first `count` lines that match, once there are so many."""
        deadline = time.monotonic() + patience
        with self.log_changed:
            while len(self.find_log(pattern)) < count:
                left = deadline - time.monotonic()
                if left <= 0 or not self.log_changed.wait(left):
                    raise AssertionError(f"not in the log {count} times: {pattern}")
            return self.find_log(pattern)[:count]

    def audit(self, **fields):
        """Records with these fields. Every line must be JSON by itself, and the last one whole."""
        with open(self.audit_path, "rb") as file:
            content = file.read()
        assert content.endswith(b"\n") or not content, "the audit log ends in a partial line"
        for byte in content:
            assert byte == 10 or 32 <= byte < 127, "the audit log has a byte that is not printable ASCII"
        records = [json.loads(line) for line in content.splitlines()]
        return [record for record in records if all(record.get(key) == value for key, value in fields.items())]

    def wait_audit(self, count=1, **fields):
        def enough():
            found = self.audit(**fields)
            return found if len(found) >= count else None

        return wait_until(enough, f"{count} audit records with {fields}")

    def counters(self):
        """What SIGUSR1 makes the parent log."""
        so_far = len(self.find_log(r"counters grants_open="))
        self.process.send_signal(signal.SIGUSR1)
        line = self.wait_log(r"counters grants_open=", so_far + 1)[so_far]
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)\b", line.split("counters ", 1)[1])}

    def wait_counter(self, name, value):
        return wait_until(lambda: self.counters()[name] == value, f"{name} to be {value}")

    def pid(self):
        """Of the parent itself, behind whatever was put before it."""
        for pid in [self.process.pid] + descendants(self.process.pid):
            if os.path.basename(command_line(pid).split(" ")[0]) == "sallyport":
                return pid
        raise AssertionError("the parent is gone")

    def children(self):
        """{title: pid}, "egress worker 0" and so on."""
        prefix = "sallyport: "
        titles = {command_line(pid): pid for pid in descendants(self.pid()) if is_alive(pid)}
        self.seen.update(titles.values())
        return {title[len(prefix) :]: pid for title, pid in titles.items() if title.startswith(prefix)}


    @contextlib.contextmanager
    def only_worker(self, index):
        """Within, new clients are taken by this worker. A client wakes one worker only: a first connection takes the
        wake-up of one that is stopped, so that the next wakes this one, which accepts both."""
        others = [pid for title, pid in self.children().items() if re.fullmatch(f"egress worker [^{index}]", title)]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            with socket.create_connection(("127.0.0.1", self.port)):
                yield
        finally:
            for pid in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


# -- clients -------------------------------------------------------------------------------------


def connect(port, target, early=b"", timeout=PATIENCE_S):
    """Sends a CONNECT; returns the socket, on which nothing has been read yet."""
    client = socket.create_connection(("127.0.0.1", port), timeout)
    client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("latin-1") + early)
    return client


def read_head(client):
    """The response's head, text; what follows stays in the socket."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        if not byte:
            raise AssertionError(f"the connection ended within a head: {head!r}")
        head += byte
    return head.decode("latin-1")


def tunnel(port, target, early=b""):
    """An established tunnel."""
    client = connect(port, target, early)
    head = read_head(client)
    assert head == "HTTP/1.1 200 Connection Established\r\n\r\n", head
    return client


def refusal(port, target):
    """(status line, fields with lower-case names, body) of a refused CONNECT; the connection must end."""
    with connect(port, target) as client:
        head = read_head(client)
        lines = head.split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:] if line)
        fields = {name.lower(): value for name, value in fields.items()}
        body = read_all(client)
        assert len(body) == int(fields["content-length"]), (fields, body)
        return lines[0], fields, body.decode("ascii")


def read_exactly(client, count):
    content = b""
    while len(content) < count:
        piece = client.recv(count - len(content))
        if not piece:
            raise AssertionError(f"{len(content)} bytes came of {count}")
        content += piece
    return content


def read_all(client):
    pieces = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def reset(client):
    """Closes with a reset."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, array.array("i", [1, 0]).tobytes())
    client.close()


def is_reset(client):
    """Waits for the end of the connection: True when it was a reset."""
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return False
