"""Servers that tests reach through Sallyport: TLS with a certificate authority of their own, and plain TCP."""

import contextlib
import functools
import http.server
import os
import queue
import socket
import ssl
import subprocess
import threading

NAMES = ("allowed.test", "denied.test", "registry.test", "git.test")
CLOSE_NOTIFY_S = 5


class Authority:
    """A certificate authority made for one test run, and one certificate for all names."""

    def __init__(self, folder):
        self.ca = os.path.join(folder, "ca.pem")
        self.chain = os.path.join(folder, "server.pem")
        ca_key, key = os.path.join(folder, "ca.key"), os.path.join(folder, "server.key")
        request = os.path.join(folder, "server.csr")
        extensions = os.path.join(folder, "server.ext")
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self.openssl(
            "req", "-x509", *curve, "-keyout", ca_key, "-out", self.ca, "-days", "2", "-subj", "/CN=Test authority",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
        self.openssl("req", *curve, "-keyout", key, "-out", request, "-subj", f"/CN={NAMES[0]}")
        with open(extensions, "w", encoding="ascii") as file:
            file.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) + "\n")
        self.openssl(
            "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
            "-extfile", extensions, "-out", self.chain,
        )  # fmt: skip
        with open(self.chain, "a", encoding="ascii") as chain, open(key, encoding="ascii") as private:
            chain.write(private.read())

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    def server_context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        return context

    def client_context(self):
        return ssl.create_default_context(cafile=self.ca)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append(self.path)
        super().do_GET()


class TlsOrigin(http.server.ThreadingHTTPServer):
    """Serves a folder over HTTPS. `requests` has every path that was asked for."""

    daemon_threads = True

    def __init__(self, authority, folder):
        super().__init__(("127.0.0.1", 0), functools.partial(QuietHandler, directory=folder))
        self.context = authority.server_context()
        self.port = self.server_address[1]
        self.requests = []
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def finish_request(self, request, client_address):
        # The handshake belongs to the connection's own thread.
        with contextlib.suppress(OSError), self.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)
            secured.settimeout(CLOSE_NOTIFY_S)
            secured.unwrap()

    def handle_error(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()


class TcpOrigin:
    """A plain listener whose connections the test takes and uses as it likes."""

    def __init__(self, family=socket.AF_INET, address="127.0.0.1"):
        self.listener = socket.socket(family)
        self.listener.bind((address, 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]

    def accept(self, timeout=30):
        self.listener.settimeout(timeout)
        connection, _ = self.listener.accept()
        connection.settimeout(timeout)
        return connection

    def nobody_came(self):
        """True when no connection waits."""
        self.listener.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            self.listener.accept()[0].close()
            return False
        return True

    def close(self):
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class EchoOrigin(TcpOrigin):
    """Sends back what comes, ends when the peer has."""

    def __init__(self):
        super().__init__()
        self.stopped = queue.Queue()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        self.listener.settimeout(None)
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                self.stopped.put(True)
                return
            threading.Thread(target=self.echo, args=(connection,), daemon=True).start()

    @staticmethod
    def echo(connection):
        with contextlib.suppress(OSError), connection:
            while piece := connection.recv(65536):
                connection.sendall(piece)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self.stopped.get(timeout=30)
        super().close()


class HangingPort:
    """A port on which connect() hangs: its queue is full and nobody accepts."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.fillers = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self.fillers.append(filler)

    def attempts(self):
        """Connections to the port that are being opened, besides those that fill it."""
        ours = {filler.getsockname()[1] for filler in self.fillers}
        found = 0
        with open("/proc/net/tcp", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                local, remote, state = fields[1].split(":")[1], fields[2].split(":")[1], fields[3]
                if int(remote, 16) == self.port and state == "02" and int(local, 16) not in ours:
                    found += 1
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for filler in self.fillers:
            filler.close()
        self.listener.close()
