# SPDX-License-Identifier: MIT
"""Runs checks of the dashboard in a headless Chromium, which all tests of a class share.

    class XTest(BrowserTest):
        def test_x(self):
            server = self.start_http_server()
            self.browse("contents", server)      # a check of clients/node/dashboard.cjs
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import threading

from harness.node import MODULES, SCRIPTS, node
from harness.ports import free_port
from harness.server_case import ServerTest
from harness.waiting import DEADLINE_S, wait_until

BROWSER_MODULES = MODULES / "node_modules_browser"
LIMIT_S = 2 * DEADLINE_S  # time limit for all checks of one call of run()


class Browser:
    """One Chromium process. It runs each check in a separate browser context, and several checks in
    parallel if requested.
    """

    def __init__(self, chromium):
        self.folder = tempfile.TemporaryDirectory(
            # Chromium's child processes may still write to the folder while it is removed.
            prefix="bloomery-browser-", ignore_cleanup_errors=True
        )
        settings = {
            "chromium": chromium, "profile": self.folder.name,
            "modules": str(BROWSER_MODULES / "node_modules"),
        }  # fmt: skip
        command = [str(node()), str(SCRIPTS / "dashboard.cjs"), json.dumps(settings)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, tasks):
        """Runs the checks `tasks` in parallel and returns the messages of those that failed."""
        for number, task in enumerate(tasks):
            self.process.stdin.write(json.dumps({**task, "number": number}) + "\n")
        self.process.stdin.flush()
        limit = threading.Timer(LIMIT_S, self.process.kill)
        limit.start()
        try:
            lines = [self.process.stdout.readline() for _ in tasks]
        finally:
            limit.cancel()
        answers = [json.loads(line) for line in lines if line]
        failures = []
        if missing := set(range(len(tasks))) - {answer["number"] for answer in answers}:
            names = ", ".join(str(tasks[number]) for number in sorted(missing))
            failures = [f"the browser ended, or took more than {LIMIT_S} s for: {names}"]
        return failures + [
            f"{tasks[answer['number']]['check']}: {answer['failure']}"
            for answer in answers
            if answer["failure"]
        ]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


class Signs:
    """Lets a check in the browser wait for its test at certain steps. At such a step the check
    creates a file, and waits until the test removes this file.
    """

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory(prefix="bloomery-signs-")
        test.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def after(self, step, action):
        """Waits until the check has reached the step, runs the action, then lets the check
        continue.
        """
        sign = self.folder / step
        wait_until(sign.exists, what=f"the page shows what '{step}' stands for")
        action()
        sign.unlink()


class BrowserTest(ServerTest):
    """A test case whose tests share a browser."""

    browser = None

    def setUp(self):
        chromium = shutil.which("chromium")
        if chromium is None:
            self.skipTest("there is no chromium: run scripts/install_deps.sh test")
        self.assertTrue(
            (BROWSER_MODULES / ".installed").exists(), "run scripts/install_node_packages.sh"
        )
        if type(self).browser is None:
            type(self).browser = Browser(chromium)
            self.addClassCleanup(self.browser.close)
        super().setUp()

    def start_http_server(self, *options, **more):
        """Starts a server with a dashboard. Sets the server's attribute `http_port` to the
        dashboard's port.
        """
        http_port = free_port()
        server = self.start_server("--http-port", http_port, *options, **more)
        server.http_port = http_port
        return server

    @staticmethod
    def task(check, server, **more):
        return {
            "check": check, "origin": f"http://127.0.0.1:{server.http_port}",
            "port": server.port, **more,
        }  # fmt: skip

    def browse_all(self, tasks):
        failures = self.browser.run(tasks)
        self.assertFalse(failures, "\n".join(failures))

    def browse(self, check, server, **more):
        self.browse_all([self.task(check, server, **more)])

    def browse_with(self, steps, *arguments, **more):
        """Runs a check. `steps` maps names of steps to functions. Each function is called when the
        check reaches its step.
        """
        signs = Signs(self)

        def follow():
            for step, action in steps.items():
                signs.after(step, action)

        follower = threading.Thread(target=follow)
        follower.start()
        try:
            self.browse(*arguments, signs=str(signs.folder), **more)
        finally:
            # The thread `follower` waits for the files of all steps. If a check has failed, the
            # files of the later steps are missing, so they are created here.
            for step in steps:
                (signs.folder / step).touch()
            follower.join()
