"""Real clients through Sallyport to a TLS origin: what is allowed works, what is denied shows why."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
import unittest

import harness
from harness import entry
from origins import Authority, TlsOrigin

CONTENT = b"reached\n" * 1000
UNDICI_PLACES = ("/usr/share/nodejs/undici", "/usr/lib/nodejs/undici")  # Debian's; npm's own is asked for first

FETCH = """
const { ProxyAgent } = require(process.argv[1]);
fetch(process.argv[2], { dispatcher: new ProxyAgent({ uri: process.argv[3] }) })
  .then((response) => response.text())
  .then((text) => process.stdout.write(text))
  .catch((error) => {
    for (; error; error = error.cause) console.error(String(error));
    process.exit(1);
  });
"""

URLLIB = """
import ssl, sys, urllib.request
proxy = urllib.request.ProxyHandler({"https": sys.argv[2]})
trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=sys.argv[3]))
sys.stdout.buffer.write(urllib.request.build_opener(proxy, trust).open(sys.argv[1], timeout=30).read())
"""


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="sallyport-test-"))
        cls.served = os.path.join(cls.folder, "served")
        os.mkdir(cls.served)
        cls.authority = Authority(cls.folder)
        cls.origin = cls.enterClassContext(TlsOrigin(cls.authority, cls.served))
        with open(os.path.join(cls.served, "file"), "wb") as file:
            file.write(CONTENT)
        names = ["allowed.test", "git.test", "registry.test"]
        sallyport = harness.Sallyport(
            allow=[entry(name, cls.origin.port) for name in names], hosts=["127.0.0.1 denied.test " + " ".join(names)]
        )
        cls.sallyport = cls.enterClassContext(sallyport)
        cls.proxy = f"http://127.0.0.1:{sallyport.port}"

    def setUp(self):
        self.origin.requests.clear()
        self.home = self.enterContext(tempfile.TemporaryDirectory(prefix="sallyport-test-"))

    def run_client(self, *command, text=None, more=None):
        """A clean environment: no proxy but ours, no settings of whoever runs the tests."""
        environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LC_ALL": "C", **(more or {})}
        return subprocess.run(
            command, input=text, env=environment, cwd=self.home, capture_output=True, timeout=120, check=False
        )

    def url(self, host, path="/file"):
        return f"https://{host}:{self.origin.port}{path}"

    def allowed(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.origin.requests, "the origin was asked")
        self.assertTrue(self.sallyport.audit(event="grant"))

    def denied(self, done, *words):
        """It failed, said these words, and nothing reached the origin."""
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        self.assertNotEqual(done.returncode, 0, said)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(self.origin.requests, [])
        self.assertTrue(self.sallyport.audit(event="refusal", host="denied.test", reason="blocked-by-allowlist"))

    def reason_line(self):
        return f"Blocked by allowlist: denied.test:{self.origin.port}"

    # curl

    def curl(self, host):
        return self.run_client("curl", "-sv", "-x", self.proxy, "--cacert", self.authority.ca, self.url(host))

    def test_curl_allowed(self):
        done = self.curl("allowed.test")
        self.allowed(done)
        self.assertEqual(done.stdout, CONTENT)

    def test_curl_denied(self):
        self.denied(
            self.curl("denied.test"), f"< HTTP/1.1 403 {self.reason_line()}", "< X-Proxy-Error: blocked-by-allowlist"
        )

    # git

    def make_repository(self):
        bare = os.path.join(self.served, "project.git")
        if not os.path.exists(bare):
            steps = f"""
                git init -q -b main work && cd work && echo hello > README && git add README &&
                git -c user.name=t -c user.email=t@example.org commit -qm first &&
                git clone -q --bare . {bare} && git --git-dir={bare} update-server-info
            """
            made = self.run_client("sh", "-ec", steps)
            self.assertEqual(made.returncode, 0, made.stderr)

    def git_clone(self, host):
        self.make_repository()
        self.origin.requests.clear()
        more = {"https_proxy": self.proxy, "GIT_SSL_CAINFO": self.authority.ca, "GIT_CONFIG_NOSYSTEM": "1"}
        return self.run_client("git", "clone", self.url(host, "/project.git"), "clone", more=more)

    def test_git_allowed(self):
        self.allowed(self.git_clone("git.test"))
        with open(os.path.join(self.home, "clone/README"), encoding="ascii") as file:
            self.assertEqual(file.read(), "hello\n")

    def test_git_denied(self):
        self.denied(self.git_clone("denied.test"), "403")

    # wget

    def wget(self, host):
        return self.run_client(
            "wget", "--no-config", "--tries=1", "-O", "-", f"--ca-certificate={self.authority.ca}", self.url(host),
            more={"https_proxy": self.proxy},
        )  # fmt: skip

    def test_wget_allowed(self):
        done = self.wget("allowed.test")
        self.allowed(done)
        self.assertEqual(done.stdout, CONTENT)

    def test_wget_denied(self):
        self.denied(self.wget("denied.test"), self.reason_line())

    # npm

    def make_package(self, host):
        """The smallest registry: one document, one tarball."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, content in (("package.json", '{"name":"tiny","version":"1.0.0"}'), ("index.js", "module.exports=7")):
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content.encode()))
        tarball = packed.getvalue()
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        version = {
            "name": "tiny",
            "version": "1.0.0",
            "dist": {"tarball": self.url(host, "/tiny-1.0.0.tgz"), "integrity": integrity},
        }
        document = {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        with open(os.path.join(self.served, "tiny-1.0.0.tgz"), "wb") as file:
            file.write(tarball)
        with open(os.path.join(self.served, "tiny"), "w", encoding="ascii") as file:
            json.dump(document, file)

    def npm_install(self, host):
        self.make_package(host)
        return self.run_client(
            "npm", "install", "tiny", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0",
            f"--registry={self.url(host, '/')}", f"--cafile={self.authority.ca}", f"--https-proxy={self.proxy}",
        )  # fmt: skip

    @unittest.skipUnless(harness.find_command("npm"), "npm is not installed")
    def test_npm_allowed(self):
        self.allowed(self.npm_install("registry.test"))
        self.assertTrue(os.path.exists(os.path.join(self.home, "node_modules/tiny/index.js")))
        self.assertIn("/tiny-1.0.0.tgz", self.origin.requests)

    @unittest.skipUnless(harness.find_command("npm"), "npm is not installed")
    def test_npm_denied(self):
        self.denied(self.npm_install("denied.test"))

    # Node's fetch

    def fetch(self, host):
        root = self.run_client("npm", "root", "-g").stdout.decode().strip()
        places = [os.path.join(root, "npm/node_modules/undici"), *UNDICI_PLACES]
        undici = next((place for place in places if os.path.isdir(place)), None)
        if not undici:
            self.skipTest("no undici, and with it no proxy agent for fetch, in " + ", ".join(places))
        more = {"NODE_EXTRA_CA_CERTS": self.authority.ca}
        return self.run_client("node", "-e", FETCH, undici, self.url(host), self.proxy, more=more)

    @unittest.skipUnless(harness.find_command("npm"), "npm is not installed")
    def test_node_fetch_allowed(self):
        done = self.fetch("allowed.test")
        self.allowed(done)
        self.assertEqual(done.stdout, CONTENT)

    @unittest.skipUnless(harness.find_command("npm"), "npm is not installed")
    def test_node_fetch_denied(self):
        self.denied(self.fetch("denied.test"), "403")

    # Python

    def urllib(self, host):
        return self.run_client("python3", "-c", URLLIB, self.url(host), self.proxy, self.authority.ca)

    def test_urllib_allowed(self):
        done = self.urllib("allowed.test")
        self.allowed(done)
        self.assertEqual(done.stdout, CONTENT)

    def test_urllib_denied(self):
        self.denied(self.urllib("denied.test"), f"403 {self.reason_line()}")

    # openssl

    def s_client(self, host):
        request = f"GET /file HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
        return self.run_client(
            "openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile", self.authority.ca, "-servername", host,
            "-proxy", self.proxy.removeprefix("http://"), "-connect", f"{host}:{self.origin.port}", text=request,
        )  # fmt: skip

    def test_openssl_allowed(self):
        done = self.s_client("allowed.test")
        self.allowed(done)
        self.assertTrue(done.stdout.endswith(CONTENT))

    def test_openssl_denied(self):
        self.denied(self.s_client("denied.test"), f"403 {self.reason_line()}")


if __name__ == "__main__":
    unittest.main()
