"""A double of Pyroscope and of a receiver of OpenTelemetry: it checks what comes, keeps what it takes, and does
what servers do on bad days when it is told to."""

import gzip
import http.server
import socket
import ssl
import struct
import threading
import time

import messages


class Fault:
    """What is to happen to one request instead of taking it.

    status: this answer, with Retry-After if that is given
    reset: the connection is reset after half of the body was read
    unanswered: the request is taken, and the connection is closed without an answer
    slow: the request is taken, after so many seconds
    partial: OpenTelemetry's answer says that so many profiles are rejected
    """

    def __init__(self, kind, status=0, retry_after=None, number=0):
        self.kind, self.status, self.retry_after, self.number = kind, status, retry_after, number


class Quiet(http.server.ThreadingHTTPServer):
    """Clients that are killed, and handshakes that fail, are what is tested: nothing is printed of them."""

    daemon_threads = True
    # Many hosts come at the same moment.
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass


class Double:
    def __init__(self, tls=None, port=0, idle=None):
        """idle: after so many seconds without a request a connection is closed."""
        self.now = time.time
        self.lock = threading.Lock()
        # By UUID: what was said of its owner, and its stacks.
        self.taken = {}
        self.deliveries = 0
        self.requests = []  # (time, status)
        self.wrong = []
        self.faults = []
        self.token = None
        self.samples_max = None  # more in one request is answered with 413
        self.headers = []
        double = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = idle

            def log_message(self, *_):
                pass

            def do_POST(self):
                double.handle(self)

        self.server = Quiet(("127.0.0.1", port), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls["cert"], tls["key"])
            if tls.get("client_ca"):
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(tls["client_ca"])
            # The handshake belongs to the thread of the connection.
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, status, body=b"", headers=()):
        with self.lock:
            self.requests.append((time.monotonic(), status))
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def handle(self, handler):
        length = int(handler.headers["Content-Length"])
        with self.lock:
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            fault = self.faults.pop(0) if self.faults else None
        if fault and fault.kind == "reset":
            handler.rfile.read(length // 2)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with self.lock:
                self.requests.append((time.monotonic(), 0))
            handler.close_connection = True
            handler.connection.close()
            return
        body = handler.rfile.read(length)
        if len(body) < length:
            # Whoever sent it was killed in the middle of it.
            handler.close_connection = True
            return
        if self.token and handler.headers.get("Authorization") != "Bearer " + self.token:
            said = f"bad token {handler.headers.get('Authorization')}\n\x1b[31m".encode()
            return self.answer(handler, 401, said)
        if fault and fault.kind == "status":
            after = [("Retry-After", fault.retry_after)] if fault.retry_after else []
            return self.answer(handler, fault.status, b"as it was told", after)
        try:
            found = self.read(handler, body)
        except Exception as error:
            with self.lock:
                self.wrong.append(repr(error))
            return self.answer(handler, 400, repr(error).encode())
        total = sum(sum(stacks.values()) for *_, stacks in found)
        if self.samples_max and total > self.samples_max:
            return self.answer(handler, 413, b"too much")
        rejected = fault.number if fault and fault.kind == "partial" else 0
        with self.lock:
            self.deliveries += len(found)
            for uuid, about, profile, stacks in found:
                if uuid in self.taken and self.taken[uuid][2] != stacks:
                    self.wrong.append(f"{uuid} came twice with other contents")
                self.taken[uuid] = (about, profile, stacks)
        if fault and fault.kind == "unanswered":
            with self.lock:
                self.requests.append((time.monotonic(), 0))
            handler.close_connection = True
            return handler.connection.close()
        if fault and fault.kind == "slow":
            time.sleep(fault.number)
        answer = b""
        if rejected:
            response = messages.ExportResponse()
            response.partial_success.rejected_profiles = rejected
            answer = response.SerializeToString()
        self.answer(handler, 200, answer)

    def check_pprof(self, packed):
        return messages.check_pprof(packed)

    def read(self, handler, body):
        kind = handler.headers.get("Content-Type")
        if handler.path == "/push.v1.PusherService/Push":
            messages.need(kind == "application/proto", f"content type {kind}")
            messages.need(handler.headers.get("Content-Encoding") is None, "packed twice")
            found = messages.check_push(body, self.check_pprof)
            for *_, profile, _ in found:
                messages.need(self.now() - profile.time_nanos / 1e9 < 3600, "older than an hour")
            return found
        messages.need(handler.path == "/v1development/profiles", f"path {handler.path}")
        messages.need(kind == "application/x-protobuf", f"content type {kind}")
        messages.need(handler.headers.get("Content-Encoding") == "gzip", "not packed")
        raw = gzip.decompress(body)
        messages.need(len(raw) <= 64 << 20, "more than 64 MiB")
        return messages.check_export(raw)

    def total(self):
        with self.lock:
            return sum(sum(stacks.values()) for _, _, stacks in self.taken.values())

    def stacks(self, service):
        """The stacks of a service, of all that was taken."""
        sums = {}
        with self.lock:
            for about, _, stacks in self.taken.values():
                if service in (about.get("service_name"), about.get("service.name")):
                    for key, value in stacks.items():
                        sums[key] = sums.get(key, 0) + value
        return sums
