# SPDX-License-Identifier: MIT
"""Shared parts of the TLS tests: servers with certificates, and connections to them."""

import tempfile

from harness import ServerTest, free_port
from harness.resp import Connection
from harness.tls_files import TlsFiles


class TlsConnection(Connection):
    """A Connection whose socket speaks TLS."""

    def __init__(self, port, context, **options):
        super().__init__(port, **options)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


class TlsTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="bloomery-tls-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = TlsFiles(cls.folder.name)
        cls.files.make_certificate("client")

    def start_tls_server(self, *more, auth="no", plain=True):
        self.tls_port = free_port()
        options = self.files.server_options(self.tls_port, *more, auth=auth)
        if not plain:
            options += ["--port", 0]
        server = self.start_server(*options)
        return server

    def connect_tls(self, *, context=None, port=None, **identity):
        context = context or self.files.client_context(**identity)
        connection = TlsConnection(port or self.tls_port, context)
        self.addCleanup(connection.close)
        return connection

    def redis_cli(self, *words, port=None, **identity):
        options = self.files.client_options(**identity)
        return self.run_client(
            ["redis-cli", "-p", port or self.tls_port, *options, *words]
        ).strip()
