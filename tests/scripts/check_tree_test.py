#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bad trees for check_tree: each rule must find its own kind of badness, and say the fix."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_tree.py"
SPDX = "// SPDX-License-Identifier: MIT\n"
HEADER = SPDX + "//\n// Something: what it is.\n#pragma once\n"


class CheckTreeTest(unittest.TestCase):
    def check(self, files, *options, repository=False):
        """Lays the files down and returns (exit code, output)."""
        with tempfile.TemporaryDirectory() as root:
            if repository:
                subprocess.run(["git", "init", "-q", root], check=True)
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [sys.executable, SCRIPT, "--root", root, *[o.format(root=root) for o in options]],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                # Git then takes the folder for somebody else's.
                env={**os.environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"},
            )  # fmt: skip
        return done.returncode, done.stdout

    def assert_refused(self, files, pattern, *options):
        code, output = self.check(files, *options)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, pattern)
        # One badness is told once; the last line sums up.
        self.assertEqual(len(output.splitlines()), 2, output)

    def assert_accepted(self, files, *options):
        code, output = self.check(files, *options)
        self.assertEqual(code, 0, output)

    def test_only_what_git_knows_is_looked_at(self):
        long_line = "// " + "x" * 200 + "\n"
        self.assert_accepted({"core/clock.h": HEADER, "build/release/other.h": long_line})
        ignored = {".gitignore": "/ignored/\n", "ignored/other.h": long_line}
        code, output = self.check({"core/clock.h": HEADER, **ignored}, repository=True)
        self.assertEqual(code, 0, output)

    def assert_include(self, path, include, *, refused):
        files = {
            name: HEADER
            for name in (
                "core/clock.h", "protocol/limits.h", "persistence/file.h", "server/server.h",
                "server/config.h", "server/net/listener.h", "server/replication/leader.h",
                "server/commands/command.h", "tests/helper.h",
            )
        }  # fmt: skip
        files[path] = SPDX + f"#include {include}\n"
        if refused:
            self.assert_refused(files, refused)
        else:
            self.assert_accepted(files)

    def test_layers(self):
        self.assert_include("core/a.cpp", '"protocol/limits.h"', refused="move the shared part")
        self.assert_include("core/a.cpp", '"persistence/file.h"', refused="core/ may not include")
        self.assert_include("protocol/a.cpp", '"core/clock.h"', refused="protocol/ may not")
        self.assert_include("persistence/a.cpp", '"server/config.h"', refused="persistence/ may")
        self.assert_include("server/a.cpp", '"tests/helper.h"', refused="server/ may not include")
        self.assert_include("persistence/a.cpp", '"core/clock.h"', refused=None)
        self.assert_include("tests/a.cpp", '"server/config.h"', refused=None)

    def test_libraries_of_a_layer(self):
        self.assert_include("core/a.cpp", "<boost/asio.hpp>", refused="Asio only in server/net/")
        self.assert_include("core/a.cpp", "<boost/json.hpp>", refused="not on the list of core/")
        self.assert_include("core/a.cpp", "<sys/socket.h>", refused="further up")
        self.assert_include("core/a.cpp", "<spdlog/spdlog.h>", refused="not on the list of core/")
        self.assert_include("protocol/a.cpp", "<xxhash.h>", refused="not on the list of protocol/")
        for include in (
            "<vector>", "<fmt/format.h>", "<xxhash.h>", "<boost/system/result.hpp>",
            "<boost/unordered/unordered_flat_map.hpp>", "<boost/container/small_vector.hpp>",
        ):  # fmt: skip
            self.assert_include("core/a.cpp", include, refused=None)

    def test_layers_inside_the_server(self):
        self.assert_include(
            "server/commands/a.cpp", '"server/net/listener.h"', refused="net/ stands above commands"
        )
        self.assert_include(
            "server/replication/a.cpp", '"server/commands/command.h"', refused="stands above"
        )
        self.assert_include("server/commands/a.cpp", '"server/server.h"', refused="composes")
        self.assert_include("server/session.cpp", '"server/commands/command.h"', refused="above")
        self.assert_include("server/net/a.cpp", '"server/commands/command.h"', refused=None)
        self.assert_include("server/commands/a.cpp", '"server/replication/leader.h"', refused=None)
        self.assert_include("server/commands/a.cpp", '"server/config.h"', refused=None)
        self.assert_include("server/main.cpp", '"server/server.h"', refused=None)
        self.assert_include("server/server.cpp", '"server/net/listener.h"', refused=None)

    def test_asio_inside_the_server(self):
        for path in ("server/commands/a.cpp", "server/config.cpp"):
            self.assert_include(path, "<boost/asio/post.hpp>", refused="handlers cannot suspend")
        for path in ("server/net/a.cpp", "server/server.cpp", "server/main.cpp"):
            self.assert_include(path, "<boost/asio/post.hpp>", refused=None)

    def test_includes_are_written_from_the_root(self):
        self.assert_include("core/a.cpp", '"clock.h"', refused="not a path from the root")
        self.assert_include("core/b/a.cpp", '"../clock.h"', refused="not a path from the root")
        self.assert_include("core/a.cpp", '"core/nothing.h"', refused="not a path from the root")

    def test_cycle(self):
        files = {
            "core/a.h": HEADER + '#include "core/b.h"\n',
            "core/b.h": HEADER + '#include "core/c.h"\n',
            "core/c.h": HEADER + '#include "core/a.h"\n',
        }
        self.assert_refused(files, r"core/a.h -> core/b.h -> core/c.h -> core/a.h: declare forward")
        files["core/c.h"] = HEADER
        self.assert_accepted(files)

    def test_long_file(self):
        self.assert_accepted({"core/a.cpp": SPDX + "//\n" * 499})
        self.assert_refused({"core/a.cpp": SPDX + "//\n" * 500}, "501 lines, 500 are allowed")

    def test_long_function(self):
        def function(lines, head="int Noun::f(int a) const"):
            return SPDX + head + " {\n" + "  g();\n" * (lines - 2) + "}\n"

        self.assert_accepted({"core/a.cpp": function(70)})
        self.assert_refused({"core/a.cpp": function(71)}, r"`Noun::f` has 71 lines, 70 are allowed")
        for head in ("void f()", "TEST(Suite, Name)", "A::A(int b) : b_(b)", "auto f() -> int",
                     "std::vector<int> f(\n    int a)"):  # fmt: skip
            self.assert_refused({"core/a.cpp": function(80, head)}, "lines, 70 are allowed")

    def test_long_things_that_are_no_function(self):
        body = "int a;\n" * 90
        for head in ("namespace core", "class A", "struct A : B<int>", "enum class A : int",
                     "const int kTable[] ="):  # fmt: skip
            text = SPDX + head + " {\n" + body + "};\n"
            self.assert_accepted({"core/a.cpp": text})
        short = "void f() { g(\"{\"); h('{'); }  // {\n" * 90
        self.assert_accepted({"core/a.cpp": SPDX + "namespace core {\n" + short + "}\n"})

    def test_long_line(self):
        self.assert_accepted({"core/a.cpp": SPDX + "//" + "x" * 98 + "\n"})
        self.assert_refused({"core/a.cpp": SPDX + "//" + "x" * 99 + "\n"}, "101 columns")
        self.assert_accepted({"core/a.cpp": SPDX + "// https://example.org/" + "x" * 99 + "\n"})
        script = "# SPDX-License-Identifier: MIT\n#" + "x" * 100 + "\n"
        self.assert_refused({"scripts/a.py": script}, "break the line")

    def test_openings(self):
        self.assert_refused({"core/a.cpp": "int a;\n"}, "no licence line: open the file with")
        self.assert_refused({"scripts/a.sh": "#!/bin/sh\n"}, "no licence line")
        unguarded = HEADER.replace("#pragma once\n", "")
        self.assert_refused({"core/a.h": unguarded}, "add `#pragma once`")
        self.assert_refused({"core/a.h": SPDX + "//\n#pragma once\n"}, "no opening comment")

    def test_banned_words(self):
        for word in ("TO" "DO", "FIX" "ME", "XX" "X"):
            text = SPDX + f"// {word}: later\n"
            self.assert_refused({"core/a.cpp": text}, "needs an issue number")
            self.assert_accepted({"core/a.cpp": SPDX + f"// {word}(#12): later\n"})
        self.assert_refused({"docs/a.md": "see /ho" "me/me/notes\n"}, "a path of one machine")
        self.assert_refused({"docs/a.md": "see /ro" "ot/notes\n"}, "a path of one machine")
        self.assert_accepted({"docs/a.md": "see https://example.org/ho" "me/me\n"})

    def test_emptied_containers(self):
        for line in ("x = {};", "if (a) b.c_ = {};", "else p->q = std::string();", "x.y = {};",
                     "at[i].x = {};", "v = std::vector<int>();"):  # fmt: skip
            text = SPDX + "void f() {\n  g();\n  " + line + "\n}\n"
            self.assert_refused({"core/a.cpp": text}, r"cpp:4: .* keeps the capacity")
            self.assert_accepted({"tests/a.cpp": text})
        for line in ("int x = {};", "x = Type{};", "auto y = std::string();", "f({});", "x = {1};"):
            text = SPDX + "void f() {\n  g();\n  " + line + "\n}\n"
            self.assert_accepted({"core/a.cpp": text})

    def test_limits_that_only_admission_may_ask_for(self):
        for call in ("config.max_bulk_bytes()", "services.memory.fits(1)", "memory_.over_limit()"):
            text = SPDX + f"bool a = {call};\n"
            self.assert_refused({"server/commands/a.cpp": text}, r"cpp:2: .* ctx.admission\(\)")
            self.assert_accepted({"server/net/a.cpp": text})
            self.assert_accepted({"server/dispatch/admission.h": HEADER + text})
        self.assert_accepted({"server/commands/a.cpp": SPDX + "// as max_bulk_bytes\n"})

    def test_source_that_no_target_builds(self):
        files = {"core/a.cpp": SPDX, "core/b.cpp": SPDX, "tests/fuzz/c.cpp": SPDX}
        entry = {"directory": "/", "file": "a.cpp"}
        files["build/compile_commands.json"] = json.dumps([entry])
        code, output = self.check(files, "--build", "{root}/build")
        self.assertEqual(code, 1)
        self.assertEqual(output.count("no target builds this: add it to one or delete it"), 2)
        self.assert_refused({"core/a.h": HEADER}, "configure first", "--build", "{root}/build")

    def test_sources_compiled_in_groups(self):
        group = "build/core/CMakeFiles/core.dir/Unity/unity_0_cxx.cxx"
        files = {"core/a.cpp": SPDX, "core/b.cpp": SPDX}
        files[group] = '/* generated */\n#include "../../../../../core/a.cpp"\n'
        files["build/compile_commands.json"] = json.dumps([{"directory": "..", "file": group}])
        code, output = self.check(files, "--build", "{root}/build")
        self.assertEqual(code, 1)
        self.assertIn("core/b.cpp:1: no target builds this", output)
        self.assertNotIn("core/a.cpp:1", output)


if __name__ == "__main__":
    unittest.main()
