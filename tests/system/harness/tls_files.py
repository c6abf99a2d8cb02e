# SPDX-License-Identifier: MIT
"""Makes the keys and certificates of the TLS tests with the openssl program, in one folder.

The authority `ca` signs the certificates `server`, `client` and others. A test that needs an
untrusted certificate makes a second authority, `other-ca`. Keys are on an elliptic curve, because
such keys are generated quickly.
"""

import pathlib
import ssl
import subprocess

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


class TlsFiles:
    """The keys and certificates of one test, in a folder that the test removes."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.make_authority("ca")
        self.make_certificate("server")

    def path(self, name):
        return str(self.folder / name)

    def openssl(self, *words):
        done = subprocess.run(
            ["openssl", *map(str, words)], cwd=self.folder, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"openssl {words}: {done.stderr.decode()}")

    def make_authority(self, name):
        self.openssl(
            "req", "-x509", "-new", *CURVE, "-nodes", "-days", 30, "-subj", f"/CN={name}",
            "-addext", "keyUsage=critical,keyCertSign",
            "-keyout", f"{name}.key", "-out", f"{name}.crt",
        )  # fmt: skip

    def make_certificate(self, name, *, authority="ca", days=30, extension="", curve=CURVE):
        """Writes the key and the certificate to name.key and name.crt. With negative `days` the
        certificate has expired.
        """
        self.openssl(
            "req", "-new", *curve, "-nodes", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr",
        )  # fmt: skip
        text = "subjectAltName=DNS:localhost,IP:127.0.0.1\n" + extension
        pathlib.Path(self.path("extensions")).write_text(text, encoding="ascii")
        self.openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt",
            "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", days,
            "-extfile", "extensions", "-out", f"{name}.crt",
        )  # fmt: skip

    def server_options(self, port, *more, auth="no"):
        return [
            "--tls-port", port, "--tls-cert-file", self.path("server.crt"),
            "--tls-key-file", self.path("server.key"), "--tls-ca-cert-file", self.path("ca.crt"),
            "--tls-auth-clients", auth, *more,
        ]  # fmt: skip

    def client_options(self, *, certificate=None):
        """Options for redis-cli and redis-benchmark."""
        options = ["--tls", "--cacert", self.path("ca.crt")]
        if certificate:
            options += ["--cert", self.path(f"{certificate}.crt")]
            options += ["--key", self.path(f"{certificate}.key")]
        return options

    def client_context(self, *, authority="ca", certificate=None):
        context = ssl.create_default_context(cafile=self.path(f"{authority}.crt"))
        if certificate:
            context.load_cert_chain(
                self.path(f"{certificate}.crt"), self.path(f"{certificate}.key")
            )
        return context
