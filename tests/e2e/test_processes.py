"""What the running processes are, as /proc shows them: filters, capabilities, users, roots, namespaces, descriptors."""

import os
import pwd
import re
import socket
import unittest

import harness
from harness import entry, tunnel
from origins import EchoOrigin

NAMESPACES = ("net", "mnt", "pid", "ipc", "uts")
PARENT_CAPABILITIES = {5, 6, 7, 8, 21}  # KILL, SETGID, SETUID, SETPCAP, SYS_ADMIN: what replacing children needs
LISTENER_FD, SESSION_FD = 16, 64  # shared/limits.h
PIPES = 16


def status(pid):
    return dict(line.split(":\t", 1) for line in harness.read_text(f"/proc/{pid}/status").splitlines() if ":\t" in line)


def capabilities(text):
    value = int(text, 16)
    return {bit for bit in range(64) if value >> bit & 1}


def descriptors(pid):
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def kind(link):
    return re.sub(r":\[\d+\]$", "", link)


def pinned(links, wanted, kinds):
    """Numbers among `links` whose kind is wanted."""
    return {number for number in links if kinds[number] == wanted}


class Children(unittest.TestCase):
    rootless = not harness.IS_ROOT

    def setUp(self):
        self.origin = self.enterContext(EchoOrigin())
        self.sallyport = self.enterContext(
            harness.Sallyport(
                allow=[entry("allowed.test", self.origin.port)],
                hosts=["127.0.0.1 allowed.test"],
                rootless=self.rootless,
            )
        )
        self.children = self.sallyport.children()

    def each(self):
        return self.children.items()

    def test_who_there_is(self):
        self.assertEqual(set(self.children), {"egress worker 0", "egress worker 1", "resolver"})

    def test_filter_and_privileges(self):
        for _, pid in self.each():
            fields = status(pid)
            self.assertEqual(fields["Seccomp"], "2")
            self.assertEqual(fields.get("Seccomp_filters", "2"), "2", "the parent's, and its own")
            self.assertEqual(fields["NoNewPrivs"], "1")
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(int(fields[name], 16), 0, name)
            self.assertEqual(fields["Threads"], "1")

    def test_user(self):
        uid = pwd.getpwnam("nobody").pw_uid
        for _, pid in self.each():
            fields = status(pid)
            self.assertEqual(set(fields["Uid"].split()), {str(uid)})
            self.assertNotIn("0", fields["Gid"].split())

    def test_not_dumpable(self):
        """Files below /proc/PID of such a process are root's, whoever runs it."""
        for _, pid in self.each():
            self.assertEqual(os.stat(f"/proc/{pid}/environ").st_uid, 0)

    def test_limits(self):
        for _, pid in self.each():
            limits = harness.read_text(f"/proc/{pid}/limits")
            self.assertRegex(limits, r"Max core file size +0 +0 ")
            self.assertRegex(limits, r"Max processes +0 +0 ")

    def test_no_memory_is_writable_and_executable(self):
        for _, pid in self.each():
            self.assertNotRegex(harness.read_text(f"/proc/{pid}/maps"), r"(?m)^\S+ .wx")

    def test_parent_is_reduced(self):
        fields = status(self.sallyport.pid())
        self.assertEqual(fields["Seccomp"], "2")
        self.assertEqual(fields["NoNewPrivs"], "1")
        for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"):
            if not self.rootless:
                self.assertLessEqual(capabilities(fields[name]), PARENT_CAPABILITIES, name)
            elif name != "CapBnd":
                self.assertEqual(capabilities(fields[name]), set(), name)


@unittest.skipUnless(harness.IS_ROOT, "these steps need root")
class ChildrenOfRoot(Children):
    def test_bounding_set_and_groups(self):
        for _, pid in self.each():
            fields = status(pid)
            self.assertEqual(int(fields["CapBnd"], 16), 0)
            self.assertEqual(fields["Groups"].split(), [])

    def test_root_is_empty(self):
        for _, pid in self.each():
            self.assertEqual(os.listdir(f"/proc/{pid}/root/"), [])
            mounts = harness.read_text(f"/proc/{pid}/mountinfo").splitlines()
            self.assertEqual(len(mounts), 1, mounts)
            self.assertIn("ro", mounts[0].split()[5].split(","))

    def test_namespaces(self):
        for _, pid in self.each():
            for name in NAMESPACES:
                ours, theirs = os.readlink(f"/proc/self/ns/{name}"), os.readlink(f"/proc/{pid}/ns/{name}")
                self.assertNotEqual(ours, theirs, name)
            user = os.readlink(f"/proc/{pid}/ns/user")
            self.assertEqual(user, os.readlink("/proc/self/ns/user"), "it would falsify peer credentials")
            routes = harness.read_text(f"/proc/{pid}/net/route").splitlines()[1:]
            self.assertEqual(routes, [], "its network reaches nowhere")

    def test_descriptors(self):
        """Every one accounted for; none other."""
        for title, pid in self.each():
            found = descriptors(pid)
            kinds = {number: kind(link) for number, link in found.items()}
            worker = title.startswith("egress")
            special = {0: "/dev/null", 1: "/dev/null", 2: "socket", 3: "socket"}
            if worker:
                special[4] = "/memfd:sallyport-counters (deleted)"
                special[LISTENER_FD] = "socket"
            for number in range(SESSION_FD):
                self.assertEqual(kinds[number], special.get(number, "/dev/null"), f"descriptor {number}")
            above = {number for number in found if number >= SESSION_FD}
            loops, pipes = pinned(above, "anon_inode:[eventpoll]", kinds), pinned(above, "pipe", kinds)
            self.assertEqual(len(loops), 1)
            # The pool's pipes, and the event loop's own for signals and wake-ups.
            self.assertLessEqual(len(pipes), 2 * (PIPES + 2) if worker else 4)
            self.assertEqual(above - loops - pipes, set(), {number: found[number] for number in above})

    def test_descriptors_of_a_session(self):
        """A tunnel is two sockets in one worker, and nothing when it has ended."""
        before = {pid: len(descriptors(pid)) for pid in self.children.values()}
        with tunnel(self.sallyport.port, f"allowed.test:{self.origin.port}") as client:
            client.sendall(b"x")
            self.assertEqual(client.recv(1), b"x")
            more = {pid: len(descriptors(pid)) - count for pid, count in before.items()}
            self.assertEqual(sorted(more.values()), [0, 0, 2])
            client.shutdown(socket.SHUT_WR)
            harness.read_all(client)
        harness.wait_until(
            lambda: all(len(descriptors(pid)) == count for pid, count in before.items()), "the descriptors to go"
        )

    def test_replaced_children_are_confined_too(self):
        for title, pid in self.children.items():
            os.kill(pid, 9)
        harness.wait_until(
            lambda: len(set(self.sallyport.children().values()) - set(self.children.values())) == 3, "new children"
        )
        self.children = self.sallyport.children()
        harness.wait_until(
            lambda: all(status(pid).get("Seccomp_filters") == "2" for pid in self.children.values()), "their filters"
        )
        for check in (self.test_filter_and_privileges, self.test_user, self.test_root_is_empty, self.test_namespaces):
            check()


@unittest.skipUnless(harness.IS_ROOT, "root starts it as an ordinary user here; others have Children")
class ChildrenOfOrdinaryUser(Children):
    rootless = True

    def test_what_is_missing_is_said(self):
        self.sallyport.wait_log("confinement in force: ")
        start = self.sallyport.wait_audit(event="start")[0]
        for line in self.sallyport.find_log("confinement NOT in force"):
            for step in start["waived"].split(", "):
                self.assertIn(step, line)
        self.assertIn("supplementary groups", start["waived"])

    def test_tunnels_and_refusals(self):
        with tunnel(self.sallyport.port, f"allowed.test:{self.origin.port}") as client:
            client.sendall(b"ping")
            self.assertEqual(harness.read_exactly(client, 4), b"ping")
        line, _, _ = harness.refusal(self.sallyport.port, "denied.test:443")
        self.assertEqual(line, "HTTP/1.1 403 Blocked by allowlist: denied.test:443")


class Required(unittest.TestCase):
    @unittest.skipUnless(harness.IS_ROOT, "root can start it as an ordinary user")
    def test_ordinary_user_cannot_have_required(self):
        sallyport = harness.Sallyport(allow=["example.org"], rootless=True)
        original = sallyport.configuration
        sallyport.configuration = lambda: original().replace("best-effort", "required")
        with self.assertRaisesRegex(AssertionError, "needs root"):
            sallyport.start()
        self.assertEqual(sallyport.process.returncode, 4)
        sallyport.discard()


if __name__ == "__main__":
    unittest.main()
