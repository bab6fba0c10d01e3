"""A stand-in for object storage: moto's S3 in this process, and in front of it a server that passes requests on, or
does what a store does that has failed. moto checks neither credentials nor rights, so such answers are made here."""

import http.client
import http.server
import logging
import os
import socket
import struct
import threading
import urllib.parse

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "profiles"

logging.getLogger("werkzeug").setLevel(logging.ERROR)

# Answers of S3: a status, and what stands in the document.
ERRORS = {
    "SlowDown": (503, ""),
    "InternalError": (500, ""),
    "AccessDenied": (403, ""),
    "InvalidAccessKeyId": (403, ""),
    "SignatureDoesNotMatch": (403, ""),
    "PermanentRedirect": (301, "<Endpoint>profiles.s3.eu-west-1.amazonaws.com</Endpoint>"),
    "AuthorizationHeaderMalformed": (400, "<Region>eu-west-1</Region>"),
}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # Whoever asked has gone away: killed, or tired of waiting.


class Store:
    """`fault(method, key, number)` says what becomes of a request, of which it is the `number`th: None to pass it on, a
    name of ERRORS, `reset` to close the connection, `hang` to answer nothing, `forget` to take it and close the
    connection before the answer, or `stall` to take it and answer nothing."""

    def __init__(self):
        self.moto = ThreadedMotoServer(port=0, verbose=False)
        self.moto.start()
        self.inner = self.moto.get_host_and_port()
        # All servers of a process have the same objects.
        self.direct("POST", "/moto-api/reset")
        self.fault = lambda method, key, number: None
        self.requests, self.lock, self.over, self.stalled = [], threading.Lock(), threading.Event(), False
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def pass_on(self):
                store.answer(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.client = boto3.client(
            "s3", endpoint_url="http://{}:{}".format(*self.inner), region_name="us-east-1",
            aws_access_key_id="test", aws_secret_access_key="test",
        )
        self.client.create_bucket(Bucket=BUCKET)

    def environment(self):
        """What a program needs to speak to it, without what the caller has."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return own | {
            "AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            # Whatever is in ~/.aws here.
            "HOME": "/nowhere",
        }

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.moto.stop()

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(handler.path)
        key = urllib.parse.unquote(path.path).removeprefix(f"/{BUCKET}").lstrip("/")
        with self.lock:
            self.requests.append((handler.command, key, path.query))
            number = len(self.requests)
        fault = self.fault(handler.command, key, number)
        if fault == "hang":
            self.over.wait()
        if fault in ("hang", "reset"):
            return self.reset(handler)
        if fault in ERRORS:
            status, more = ERRORS[fault]
            document = f"<Error><Code>{fault}</Code><Message>No.</Message>{more}</Error>".encode()
            return self.send(handler, status, {"Content-Type": "application/xml"}, document, len(document))
        got, document = self.direct(handler.command, handler.path, body, dict(handler.headers))
        if fault == "stall":
            self.stalled = True
            self.over.wait()
        if fault in ("stall", "forget"):
            return self.reset(handler)
        headers = {name: value for name, value in got.getheaders() if name.lower() not in
                   ("connection", "content-length", "transfer-encoding", "date", "server")}
        length = got.getheader("Content-Length") if handler.command == "HEAD" else len(document)
        self.send(handler, got.status, headers, document, length)

    def direct(self, method, path, body=None, headers={}):
        inner = http.client.HTTPConnection(*self.inner)
        inner.request(method, path, body, headers)
        got = inner.getresponse()
        document = got.read()
        inner.close()
        return got, document

    def send(self, handler, status, headers, document, length):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(length or 0))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(document)

    def reset(self, handler):
        handler.close_connection = True
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()

    # What it keeps

    def keys(self, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return sorted(it["Key"] for page in pages for it in page.get("Contents", []))

    def bytes(self, key):
        return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def fill(self, folder, prefix):
        """Copies the files of a folder."""
        for file in folder.rglob("*.parquet"):
            self.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{file.relative_to(folder)}", Body=file.read_bytes())

    def clear(self):
        for key in self.keys():
            self.client.delete_object(Bucket=BUCKET, Key=key)
        self.stalled = False

    def copy(self, prefix, folder):
        """Copies the objects of a prefix into a folder, hidden ones as well."""
        for key in self.keys(prefix + "/"):
            file = folder / key.removeprefix(prefix + "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.bytes(key))
        return folder
