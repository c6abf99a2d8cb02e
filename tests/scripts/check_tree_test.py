#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of check_tree.py: each rule finds its own kind of error, and names the fix."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import check_tree  # noqa: E402
import server_order  # noqa: E402

SPDX = "// SPDX-License-Identifier: MIT\n"
UNTESTED = "scripts/untested_units.txt"
HEADER = SPDX + "//\n// Something: what it is.\n#pragma once\n"


class CheckTreeTest(unittest.TestCase):
    def check(self, files, *options, repository=False):
        """Writes the files and runs check_tree.py. Returns (exit code, output)."""
        with tempfile.TemporaryDirectory() as root:
            if repository:
                subprocess.run(["git", "init", "-q", root], check=True)
            untested = {UNTESTED: "".join(f"{unit}\n" for unit in self._untested(files))}
            for name, text in {**untested, **files}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            output = io.StringIO()
            # This variable makes git assume that another user owns the folder.
            elsewhere = unittest.mock.patch.dict(
                os.environ, {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
            )
            with elsewhere, contextlib.redirect_stdout(output):
                code = check_tree.main(["--root", root, *[o.format(root=root) for o in options]])
        return code, output.getvalue()

    @staticmethod
    def _untested(files):
        """Yields the path, without suffix, of each product source that has no test. These paths
        are written to the list of untested units. Otherwise check_tree.py would report them as
        further errors in tests of other rules."""
        for name in files:
            unit, dot, suffix = name.rpartition(".")
            is_product = name.startswith(("core/", "protocol/", "persistence/", "server/"))
            if is_product and suffix == "cpp" and f"tests/{unit}_test.cpp" not in files:
                yield unit

    def assert_refused(self, files, pattern, *options):
        code, output = self.check(files, *options)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, pattern)
        # The output is one line for the error, and a last line with the number of errors.
        self.assertEqual(len(output.splitlines()), 2, output)

    def assert_accepted(self, files, *options):
        code, output = self.check(files, *options)
        self.assertEqual(code, 0, output)

    def test_checks_only_files_that_git_knows(self):
        long_line = "// " + "x" * 200 + "\n"
        self.assert_accepted({"core/clock.h": HEADER, "build/release/other.h": long_line})
        ignored = {".gitignore": "/ignored/\n", "ignored/other.h": long_line}
        code, output = self.check({"core/clock.h": HEADER, **ignored}, repository=True)
        self.assertEqual(code, 0, output)

    def assert_include(self, path, include, *, refused):
        files = {
            name: HEADER
            for name in (
                "core/clock.h", "core/number.h", "protocol/limits.h", "persistence/file.h",
                "server/server.h", "server/config.h", "server/net/listener.h",
                "server/replication/leader.h", "server/commands/command.h", "tests/helper.h",
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
        self.assert_include("protocol/a.cpp", '"core/number.h"', refused=None)
        self.assert_include("persistence/a.cpp", '"server/config.h"', refused="persistence/ may")
        self.assert_include("server/a.cpp", '"tests/helper.h"', refused="server/ may not include")
        self.assert_include("persistence/a.cpp", '"core/clock.h"', refused=None)
        self.assert_include("tests/a.cpp", '"server/config.h"', refused=None)

    def test_libraries_of_a_layer(self):
        self.assert_include("core/a.cpp", "<boost/asio.hpp>", refused="Asio only in server/net/")
        self.assert_include("core/a.cpp", "<boost/json.hpp>", refused="not on the list of core/")
        self.assert_include("core/a.cpp", "<sys/socket.h>", refused="belong higher up")
        self.assert_include("core/a.cpp", "<spdlog/spdlog.h>", refused="not on the list of core/")
        self.assert_include("protocol/a.cpp", "<xxhash.h>", refused="not on the list of protocol/")
        for include in (
            "<vector>", "<fmt/format.h>", "<xxhash.h>", "<boost/system/result.hpp>",
            "<boost/unordered/unordered_flat_map.hpp>", "<boost/container/small_vector.hpp>",
        ):  # fmt: skip
            self.assert_include("core/a.cpp", include, refused=None)

    def assert_inside(self, path, include, *, refused):
        """Checks an include like assert_include(), but in a tree where the included header exists.
        """
        files = {path: SPDX + f'#include "{include}"\n', include: HEADER}
        for folder in {path.rpartition("/")[0], include.rpartition("/")[0]}:
            if folder.count("/") > 1:  # a sub-folder with fewer than four units is an error
                files.update({f"{folder}/unit{i}.h": HEADER for i in range(4)})
        if refused:
            self.assert_refused(files, refused)
        else:
            self.assert_accepted(files)

    def test_layers_inside_the_server(self):
        self.assert_inside(
            "server/commands/a.cpp", "server/net/connection.h", refused="net/ is higher than comm"
        )
        self.assert_inside(
            "server/replication/stream/a.cpp", "server/commands/command.h", refused="is higher than"
        )
        self.assert_inside("server/commands/a.cpp", "server/server.h", refused="only files direct")
        self.assert_inside("server/session/a.cpp", "server/commands/command.h", refused="higher")
        self.assert_inside("server/net/a.cpp", "server/commands/command.h", refused=None)
        self.assert_inside("server/commands/a.cpp", "server/cluster_node/b.h", refused="higher")
        self.assert_inside(
            "server/commands/a.cpp", "server/replication/leader/leader.h", refused=None
        )
        self.assert_inside("server/commands/a.cpp", "server/base/config/config.h", refused=None)
        self.assert_inside("server/main.cpp", "server/server.h", refused=None)
        self.assert_inside("server/server.cpp", "server/net/listener.h", refused=None)
        self.assert_inside("server/a/b.cpp", "server/base/config/c.h", refused="is no library")

    def test_order_of_the_libraries(self):
        self.assertGreater(len(server_order.LIBRARIES), 10)
        for library, below in server_order.LIBRARIES.items():
            for other in below:
                self.assert_inside(f"server/{library}/a.cpp", f"server/{other}/b.h", refused=None)
                self.assert_inside(f"server/{other}/a.cpp", f"server/{library}/b.h", refused="high")
        with self.assertRaisesRegex(SystemExit, "a uses b before its line"):
            server_order.read_libraries("bloomery_server_library(a bloomery_b)")
        self.assertEqual(
            server_order.read_libraries(
                "bloomery_server_library(a)\nbloomery_server_library(b bloomery_a)\n"
                "bloomery_server_library(c\n  bloomery_b)\n"
            ),
            {"a": set(), "b": {"a"}, "c": {"a", "b"}},
        )

    def test_order_inside_a_library(self):
        for library, folders in server_order.INSIDE.items():
            for lower, upper in zip(folders, folders[1:]):
                low, high = (f"server/{library}/{folder}".rstrip("/") for folder in (lower, upper))
                self.assert_inside(f"{low}/a.cpp", f"{high}/b.h", refused="is higher than")
            self.assertTrue(set(folders))
        # A sub-folder that INSIDE does not list has the same rank as its parent folder.
        self.assert_inside(
            "server/replication/stream/new/a.cpp", "server/replication/leader/b.h",
            refused="higher",
        )  # fmt: skip

    def test_includes_of_commands_on_data(self):
        for folder in ("durability", "replication/replica", "base/process", "base/config"):
            self.assert_inside(
                "server/commands/keys/a.cpp", f"server/{folder}/b.h",
                refused="commands on data include dispatch",
            )  # fmt: skip
        for folder in ("dispatch", "commands/bloom", "commands/keys"):
            self.assert_inside("server/commands/keys/a.cpp", f"server/{folder}/b.h", refused=None)
        for header in server_order.SHARED:
            self.assert_inside("server/commands/keys/a.cpp", header, refused=None)
        self.assert_inside("server/commands/keys/a.cpp", "persistence/rdb/b.h", refused=None)

    def test_folders_that_include_each_other(self):
        files = {
            "core/a/a.h": HEADER + '#include "core/b/b.h"\n',
            "core/b/b.h": HEADER,
            "core/b/c.h": HEADER + '#include "core/a/d.h"\n',
            "core/a/d.h": HEADER,
        }
        self.assert_refused(
            files, r'core/a/a.h:5: "core/b/b.h": core/a/ and core/b/ .*other \(core/b/c.h:5\): dec'
        )
        files["core/b/c.h"] = HEADER
        self.assert_accepted(files)

    @staticmethod
    def _chain(length):
        """Returns `length` headers. Each but the last includes the next one."""
        return {
            f"core/a{i:02}.h": HEADER + (f'#include "core/a{i + 1:02}.h"\n' if i < length else "")
            for i in range(1, length + 1)
        }

    def test_chains_of_includes(self):
        self.assert_accepted(self._chain(check_tree.CHAIN_FILES_MAX))
        self.assert_refused(
            self._chain(check_tree.CHAIN_FILES_MAX + 1), r"core/a01.h:1: a chain of .*: declare for"
        )

    @staticmethod
    def _wide(count, source="core/b.cpp"):
        """Returns a source that includes `count` headers. Several folders hold the headers, so that
        no folder has too many files.
        """
        headers = [f"core/f{i % 4}/a{i}.h" for i in range(count)]
        return {
            **{f"core/f{i}/value.h": HEADER for i in range(4)},
            **{
                header: HEADER + f'#include "{header.rpartition("/")[0]}/value.h"\n'
                for header in headers
            },
            source: SPDX + "".join(f'#include "{header}"\n' for header in headers),
        }

    def test_headers_that_a_source_pulls_in(self):
        most = check_tree.PULLED_HEADERS_MAX
        self.assert_accepted(self._wide(most))
        refused = rf"core/b.cpp:1: pulls in {most + 1} .*: declare forward"
        self.assert_refused(self._wide(most + 1), refused)
        self.assert_accepted(self._wide(most + 1, "server/server.cpp"))

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
        self.assert_refused({"core/a.cpp": SPDX + "//\n" * 600}, "601 lines, 600 are allowed")

    def test_long_function(self):
        def function(lines, head="int Noun::f(int a) const"):
            return SPDX + head + " {\n" + "  g();\n" * (lines - 2) + "}\n"

        self.assert_accepted({"core/a.cpp": function(70)})
        self.assert_refused({"core/a.cpp": function(71)}, r"`Noun::f` has 71 lines, 70 are allowed")
        for head in ("void f()", "TEST(Suite, Name)", "A::A(int b) : b_(b)", "auto f() -> int",
                     "std::vector<int> f(\n    int a)"):  # fmt: skip
            self.assert_refused({"core/a.cpp": function(80, head)}, "lines, 70 are allowed")

    def test_only_functions_have_a_length_limit(self):
        body = "int a;\n" * 45 + "// b\n" * 45
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

    def test_waiting_by_the_clock(self):
        # The words for sleeping are joined from pieces, so that check_tree.py accepts this test
        # file.
        script = "# " + SPDX
        for words in ("time.sle" "ep(1)", "from time import sle" "ep", "asyncio.sle" "ep(1)"):
            self.assert_refused({"tests/a_test.py": f"{script}{words}\n"}, r":2: .* wait_until\(\)")
            self.assert_accepted({"tests/system/harness/waiting.py": f"{script}{words}\n"})
            self.assert_accepted({"bench/a_bench.py": f"{script}{words}\n"})
        for words in ("std::this_thread::sle" "ep_for(a)", "usle" "ep(1)", "::sle" "ep(1)"):
            text = f"{SPDX}void f() {{ {words}; }}\n"
            self.assert_refused({"tests/core/a_test.cpp": text}, r":2: .* wait_until\(\)")
            self.assert_accepted({"tests/support/waiting.h": HEADER + text})
            self.assert_accepted({"tests/core/a_test.cpp": SPDX + "void f() { pump.sleep(1); }\n"})

    def test_ports_of_tests(self):
        script = "# " + SPDX
        for words in (
            'probe.bi' 'nd(("127.0.0.1", 0))', 'socket.create_ser' 'ver(("127.0.0.1", 7000))',
            'self.start_ser' 'ver("--port", "7000")',
        ):  # fmt: skip
            for path in ("tests/a_test.py", "bench/a_bench.py"):
                self.assert_refused({path: f"{script}{words}\n"}, r":2: .* harness.free_port\(\)")
            self.assert_accepted({"tests/system/harness/ports.py": f"{script}{words}\n"})
        self.assert_refused(
            {"tests/core/a_test.cpp": SPDX + "int a = hto" "ns(7000);\n"}, r":2: .* ReservedPort"
        )
        for words in ('create_server(("127.0.0.1", 0))', 'start_server("--port", free_port())'):
            self.assert_accepted({"tests/a_test.py": f"{script}{words}\n"})

    def test_emptied_containers(self):
        for line in ("x = {};", "if (a) b.c_ = {};", "else p->q = std::string();", "x.y = {};",
                     "at[i].x = {};", "v = std::vector<int>();"):  # fmt: skip
            text = SPDX + "void f() {\n  g();\n  " + line + "\n}\n"
            self.assert_refused({"core/a.cpp": text}, r"cpp:4: .* keeps the capacity")
            self.assert_accepted({"tests/a.cpp": text})
        for line in ("int x = {};", "x = Type{};", "auto y = std::string();", "f({});", "x = {1};"):
            text = SPDX + "void f() {\n  g();\n  " + line + "\n}\n"
            self.assert_accepted({"core/a.cpp": text})

    def test_handlers_commit_changes_in_one_call(self):
        for step in ("ctx.mark_changed(key, KeyEvent::kSet);", 'ctx.journal({"DEL", key.name});'):
            text = SPDX + f"void f(Context& ctx) {{ {step} }}\n"
            self.assert_refused({"server/commands/a.cpp": text}, r"cpp:2: .* ctx.commit\(key")
            self.assert_accepted({"server/dispatch/a.cpp": text})
        self.assert_accepted({"server/commands/a.cpp": SPDX + "void f() { ctx.commit(key, e); }\n"})

    def test_only_admission_may_read_limits(self):
        for call in ("config.max_bulk_bytes()", "services.memory.fits(1)", "memory_.over_limit()"):
            text = SPDX + f"bool a = {call};\n"
            self.assert_refused({"server/commands/a.cpp": text}, r"cpp:2: .* ctx.admission\(\)")
            self.assert_accepted({"server/net/a.cpp": text})
            self.assert_accepted({"server/dispatch/admission.h": HEADER + text})
        self.assert_accepted({"server/commands/a.cpp": SPDX + "// as max_bulk_bytes\n"})

    def test_tests_repeat_no_error_text(self):
        def files(text):
            return {
                "core/a.h": HEADER + 'constexpr auto kA = "ERR no such "\n    "key";\n'
                'auto b = format("ERR unknown user {}", name);\n',
                "tests/core/a_test.cpp": SPDX + f"// A comment.\nauto text = {text};\n",
            }

        for text in ('"ERR no such key"', '"-ERR no such key\\r\\n"', '"ERR no"\n" such key"',
                     '"ERR unknown user bob"'):  # fmt: skip
            self.assert_refused(files(text), r"a_test.cpp:3: .* repeats the text at core/a.h:\d")
        for text in ("kA", '"ERR"', '"ERR no such"', '"ERR no such keys"', "0;  // ERR no such"):
            self.assert_accepted(files(text))

    def test_tests_repeat_no_text_without_code(self):
        test = SPDX + 'auto text = "the line has no "\n    "end";\n'
        for product, is_refused in {
            'constexpr std::string_view kOpenLine =\n    "the line has no end";': True,
            'auto a() { return core::Error{"the line has no end"}; }': True,
            'auto a() { return Refusal{"the line has no end"}; }': True,
            'void a() { reader_.fail("the line has no end"); }': True,
            'void a() { reply("the line has no end"); }': False,
            'constexpr std::string_view kOpenLine = "the line has no";': False,
        }.items():
            files = {"core/a.h": HEADER + product + "\n", "tests/core/a_test.cpp": test}
            if is_refused:
                self.assert_refused(files, r"a_test.cpp:2: .* repeats the text at core/a.h:\d")
            else:
                self.assert_accepted(files)
        files = {"core/a.h": HEADER + 'constexpr auto kLabel = "bits per item";\n'}
        files["tests/core/a_test.cpp"] = SPDX + 'auto label = "bits per item";\n'
        self.assert_accepted(files)

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

    def test_units_without_a_test(self):
        files = {"core/a/b.h": HEADER, "core/a/b.cpp": SPDX, UNTESTED: ""}
        self.assert_refused(files, r"^core/a/b.cpp:1: no test: write tests/core/a/b_test.cpp")
        self.assert_accepted({**files, UNTESTED: "# reason\ncore/a/b\n"})
        self.assert_accepted({**files, "tests/core/a/b_test.cpp": SPDX})
        # A header without a .cpp file needs no test of its own, because the tests of the sources
        # that include it cover it.
        self.assert_accepted({"core/a/b.h": HEADER, UNTESTED: ""})

    def test_the_list_of_untested_units_only_shrinks(self):
        tested = {"core/a.cpp": SPDX, "tests/core/a_test.cpp": SPDX, UNTESTED: "#\ncore/a\n"}
        self.assert_refused(tested, r"^scripts/untested_units.txt:2: core/a has a test or no")
        self.assert_refused({"core/a.h": HEADER, UNTESTED: "core/b\n"}, "core/b .* delete the line")

    def test_units_of_a_folder(self):
        files = {f"core/a{i}.h": HEADER for i in range(20)}
        self.assert_accepted({**files, "core/a1.cpp": SPDX, "core/more/b.h": HEADER})
        files["core/b.h"] = HEADER
        self.assert_refused(files, r"^core:1: 21 units, 20 are allowed: give .* a folder")

    def test_units_of_a_sub_folder_of_the_server(self):
        files = {f"server/net/loop/a{i}.h": HEADER for i in range(3)}
        self.assert_refused(files, r"^server/net/loop:1: 3 units, 4 are needed: move them")
        files["server/net/loop/b.h"] = HEADER
        self.assert_accepted({**files, "server/net/c.h": HEADER})

    def test_a_class_in_two_files(self):
        one = {"core/a.h": HEADER, "core/a.cpp": SPDX + "int A::f() {\n  B::g();\n}\n"}
        one |= {"core/b.cpp": SPDX + "A* B::f() {\n  A::g(1);\n}\nA::B A::B::h() {}\n"}
        one |= {UNTESTED: "core/a\ncore/b\n"}
        self.assert_accepted(one)
        for function in ("std::vector<int> A::g(", "A::A(", "A::~A(", "void f();\n\nA& A::g("):
            two = {**one, "core/b.cpp": SPDX + function + ") {}\n"}
            self.assert_refused(two, r"^core/b.cpp:1: defines functions of A, as core/a.cpp does")

    @staticmethod
    def _class(members):
        return HEADER + f"class A {{\n public:\n{members}}};\n"

    def test_members_of_a_class(self):
        fifty = "  void f();\n" * 25 + " private:\n  int a = 0;\n" * 25
        self.assert_accepted({"core/a.h": self._class(fifty)})
        for one in (
            "  int b;\n", "  A(int a) : b_{a}, c_(a) {}\n",
            "  int f() const { return g({1}); }\n",
            "  std::function<void(int)> on_b = [](int) {};\n", "  std::map<int, int> c{{1, 2}};\n",
            "  template <class T>\n  void f(T) { if (a) { b(); } }\n", " public:\n  ~A();\n",
            "  static A make();\n  struct B {\n    int a, b;\n  };\n",
        ):  # fmt: skip
            files = {"core/a.h": self._class(fifty + one)}
            self.assert_refused(files, r"^core/a.h:1: `A` has 51 members, 50 .*: move members")
        for none in (
            "  A(const A&) = delete;\n", "  A& operator=(A&&) = default;\n",
            "  using B = int;\n", "  friend class B;\n", "  class B;\n",
            "  enum class B { kC, kD };\n", "  static constexpr int kB = 1;\n", "  // int b;\n",
            "  struct B {\n    int a, b;\n    void f() {}\n  };\n",
        ):  # fmt: skip
            self.assert_accepted({"core/a.h": self._class(fifty + none)})
        self.assert_refused({"core/a.h": self._class("  int a, b;\n" * 26)}, "has 52 members")
        self.assert_accepted({"core/a.h": HEADER + "void f() {\n" + "  int a;\n" * 60 + "}\n"})

    def test_quoted_sections(self):
        files = {"docs/page.md": "# Page\n\n## One\n\n## Two words\n\n**Three**: a.\n"}

        def quoting(text):
            return {**files, "core/a.h": SPDX + text + "#pragma once\n"}

        three = '// See docs/page.md, "One" and "Two\n// words" and "Three".\n'
        self.assert_accepted(quoting(three))
        self.assert_accepted(quoting('// See docs/page.md; "Four".\n'))
        self.assert_refused(
            quoting('// A.\n\n// See docs/page.md, "One" and\n// "Four".\n'),
            'core/a.h:4: docs/page.md has no section "Four": name one of "One", "Page", "Three", ',
        )

    def test_quoted_files(self):
        files = {"core/a.h": HEADER, "docs/page.md": "See `core/a.h`.\n"}
        self.assert_accepted({**files, "core/b.h": HEADER + "// As core/a.h does, in b_c/d.h.\n"})
        for name in ("core/c.h", "c.cpp", "docs/other.md"):
            self.assert_refused({**files, "core/b.h": HEADER + f"// As {name}.\n"}, f"names {name}")
        self.assert_refused({**files, "docs/b.md": "In `core/c.h`.\n"}, "names core/c.h, which")
        self.assert_accepted({**files, "core/b.h": HEADER + 'auto a = "core/c.h";\n'})

    def test_numbers(self):
        files = {
            "core/a.h": HEADER + '#include "core/c.h"\n' + "class A {\n  int b, c;\n};\n",
            "core/c.h": HEADER,
            "core/b.cpp": SPDX + '#include "core/a.h"\n',
            "tests/core/a_test.cpp": SPDX + "TEST(A, B) {}\nTEST_F(A, C) {}\n",
            "tests/system/a_test.py": "#!/bin/python\n# " + SPDX
            + "class A(ServerTest):\n    def test_b(self):\n"
            + "class B(unittest.TestCase):\n    def test_c(self):\n",
        }
        code, output = self.check(files, "--numbers")
        self.assertEqual(code, 0, output)
        for line in (
            r"  core/ +3 +14", r"  core/ +3", "longest include chain: 3 files",
            r"  core/b.cpp +1", r"  A +2", "units with a source: 1, with a test of that name: 0",
            r"test cases: 4, that start a server: 1 \(25.0 %\)",
        ):  # fmt: skip
            self.assertRegex(output, f"(?m)^{line}$")


if __name__ == "__main__":
    unittest.main()
