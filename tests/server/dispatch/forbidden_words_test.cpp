// SPDX-License-Identifier: MIT
//
// What a client may not make the server do.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/command_test.h"

namespace server {
namespace {

using testing::StartsWith;
using Words = std::vector<std::string>;

class ForbiddenWordsTest : public CommandTest {
 protected:
  void expect_refused(const Words& words) {
    EXPECT_THAT(run(words), StartsWith("-")) << testing::PrintToString(words);
  }
};

TEST_F(ForbiddenWordsTest, NamesOfClientsForgeNoLines) {
  const auto lines = [this] {
    const std::string list = run({"CLIENT", "LIST"});
    return std::count(list.begin(), list.end(), '\n');
  };
  const auto before = lines();
  for (const std::string& name : {std::string("a b"), std::string("a\nb"), std::string("a\r\nid=9"),
                                  std::string(1, '\0'), std::string("a\0b", 3), std::string("\x7f"),
                                  std::string("\x1b[0m"), std::string("\xc3\xa9")}) {
    for (Words words : {Words{"CLIENT", "SETNAME"},
                        {"HELLO", "3", "SETNAME"},
                        {"CLIENT", "SETINFO", "LIB-NAME"},
                        {"CLIENT", "SETINFO", "LIB-VER"}}) {
      words.push_back(name);
      expect_refused(words);
    }
  }
  EXPECT_EQ(lines(), before);
}

// Files outside the directory, code, the process' own state.
TEST_F(ForbiddenWordsTest, ConfigModuleAndDebugAreNoWeapons) {
  for (const Words& words : {Words{"CONFIG", "SET", "dir", "/tmp"},
                             {"CONFIG", "SET", "dbfilename", "x.so"},
                             {"CONFIG", "SET", "dbfilename", "../x"},
                             {"CONFIG", "SET", "appendfilename", "x"},
                             {"CONFIG", "SET", "logfile", "/tmp/x"},
                             {"CONFIG", "SET", "pidfile", "/tmp/x"},
                             {"CONFIG", "SET", "unixsocket", "/tmp/x"},
                             {"CONFIG", "SET", "aclfile", "/tmp/x"},
                             {"CONFIG", "SET", "enable-debug-command", "yes"},
                             {"CONFIG", "SET", "enable-protected-configs", "yes"},
                             {"MODULE", "LOAD", "/tmp/x.so"},
                             {"MODULE", "LOADEX", "/tmp/x.so"},
                             {"MODULE", "UNLOAD", "bf"},
                             {"DEBUG", "SLEEP", "0"},
                             {"DEBUG", "RELOAD"},
                             {"DEBUG", "SEGFAULT"},
                             {"DEBUG", "DIGEST"},
                             {"CONFIG", "REWRITE"}}) {
    expect_refused(words);
  }
  EXPECT_THAT(run({"MODULE", "LIST"}), testing::HasSubstr(bulk("name") + bulk("bf")));
}

// CVE-2022-24735, -2024-46981, -2025-49844 and the like have nothing to run in.
TEST_F(ForbiddenWordsTest, ThereIsNoInterpreter) {
  const std::string digest(40, '0');
  for (const Words& words : {Words{"EVAL", "return 1", "0"},
                             {"EVALSHA", digest, "0"},
                             {"EVAL_RO", "return 1", "0"},
                             {"FCALL", "f", "0"},
                             {"FCALL_RO", "f", "0"},
                             {"EVALSHA_RO", digest, "0"}}) {
    EXPECT_THAT(run(words), StartsWith("-ERR unknown command")) << words[0];
  }
  expect_refused({"SCRIPT", "LOAD", "return 1"});
  expect_refused({"FUNCTION", "LOAD", "#!lua name=x"});
}

}  // namespace
}  // namespace server
