// SPDX-License-Identifier: MIT
#include <set>
#include <string>

#include "protocol/error_texts.h"
#include "server/commands/keys/scan_arguments.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

class FilterScanCommandsTest : public KeyTest {
 protected:
  // Repeats BF.SCAN with these options until the cursor is 0. Returns all results.
  std::multiset<std::string> scan_all(const std::vector<std::string>& options) {
    std::multiset<std::string> names;
    std::string cursor = "0";
    do {
      std::vector<std::string> command{"BF.SCAN", cursor};
      command.insert(command.end(), options.begin(), options.end());
      const std::string reply = run(command);
      EXPECT_TRUE(reply.starts_with("*2\r\n$")) << reply;
      const size_t start = reply.find("\r\n", 4) + 2;
      cursor = reply.substr(start, reply.find("\r\n", start) - start);
      const std::string label = bulk("key");
      for (size_t at = reply.find(label); at != std::string::npos; at = reply.find(label, at + 1)) {
        const size_t name = reply.find("\r\n", at + label.size()) + 2;
        names.insert(reply.substr(name, reply.find("\r\n", name) - name));
      }
    } while (cursor != "0");
    return names;
  }
};

TEST_F(FilterScanCommandsTest, AFilterIsDescribed) {
  run({"BF.RESERVE", "seen", "0.01", "100", "LAYOUT", "REDISBLOOM"});
  run({"BF.ADD", "seen", "a"});
  const std::string reply = run({"BF.SCAN", "0", "COUNT", "1000"});
  EXPECT_TRUE(reply.starts_with("*2\r\n" + bulk("0") + "*1\r\n*28\r\n" + bulk("key") +
                                bulk("seen") + bulk("layout") + bulk("redisbloom") + bulk("items") +
                                integer(1) + bulk("capacity") + integer(100) + bulk("fill ratio")))
      << reply;
  EXPECT_TRUE(reply.ends_with(bulk("layers") + integer(1) + bulk("kind") + bulk("plain") +
                              bulk("error rate") + bulk("0.01") + bulk("reserved capacity") +
                              integer(100) + bulk("items left") + integer(99) +
                              bulk("next layer bytes") + integer(312) + bulk("ttl") + kNull))
      << reply;
  run({"HELLO", "3"});
  EXPECT_TRUE(
      run({"BF.SCAN", "0", "COUNT", "1000"}).starts_with("*2\r\n" + bulk("0") + "*1\r\n%14\r\n"));
}

TEST_F(FilterScanCommandsTest, TellsKindWindowAndTtl) {
  const auto line = [this](const std::string& key) {
    return run({"BF.SCAN", "0", "COUNT", "1000", "MATCH", key});
  };
  run({"BF.RESERVE", "deletable", "0.01", "100", "DELETABLE"});
  run({"PEXPIRE", "deletable", "5000"});
  advance_ms(1000);
  EXPECT_NE(line("deletable").find(bulk("kind") + bulk("deletable")), std::string::npos);
  EXPECT_NE(line("deletable").find(bulk("ttl") + integer(4000)), std::string::npos);
  run({"BF.RESERVE", "hour", "0.01", "400", "WINDOW", "3600"});
  run({"BF.RESERVE", "last", "0.01", "400", "WINDOW", "400", "ITEMS"});
  // BF.SCAN reports the capacity that was reserved for the whole window. The generations that exist
  // now have only a part of this capacity.
  const std::string reserved =
      bulk("reserved capacity") + integer(400) + bulk("items left") + kNull;
  EXPECT_NE(line("hour").find(reserved), std::string::npos) << line("hour");
  EXPECT_NE(line("hour").find(bulk("window seconds") + bulk("3600")), std::string::npos);
  EXPECT_NE(line("last").find(bulk("window items") + integer(400)), std::string::npos);
  run({"BF.RESERVE", "fixed", "0.01", "400", "NONSCALING"});
  EXPECT_NE(line("fixed").find(bulk("next layer bytes") + kNull), std::string::npos);
}

TEST_F(FilterScanCommandsTest, FiltersAloneAreListedEachOnce) {
  std::multiset<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "filter:" + std::to_string(i);
    run({"BF.ADD", name, "x"});
    put("string:" + std::to_string(i), "v");
    expected.insert(name);
  }
  EXPECT_EQ(scan_all({}), expected);
  EXPECT_EQ(scan_all({"COUNT", "7"}), expected);
  EXPECT_EQ(scan_all({"MATCH", "filter:29?", "COUNT", "50"}).size(), 10U);
  EXPECT_TRUE(scan_all({"MATCH", "none"}).empty());
}

TEST_F(FilterScanCommandsTest, ExpiredFiltersAreNotListed) {
  run({"BF.ADD", "f", "x"});
  run({"PEXPIRE", "f", "1"});
  advance_ms(2);
  EXPECT_TRUE(scan_all({}).empty());
}

TEST_F(FilterScanCommandsTest, WrongWordsAreRefused) {
  EXPECT_EQ(run({"BF.SCAN", "x"}), error(kInvalidCursor));
  EXPECT_EQ(run({"BF.SCAN", "0", "COUNT", "0"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"BF.SCAN", "0", "COUNT"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"BF.SCAN", "0", "TYPE", "string"}), error(protocol::kSyntaxError));
}

}  // namespace
}  // namespace server
