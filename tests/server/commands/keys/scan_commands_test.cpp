// SPDX-License-Identifier: MIT
#include <algorithm>

#include "protocol/error_texts.h"
#include "server/commands/keys/scan_arguments.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

class ScanCommandsTest : public KeyTest {
 protected:
  // Repeats SCAN with these options until the cursor is 0. Returns the names of all keys, sorted.
  std::vector<std::string> scan_all(const std::vector<std::string>& options) {
    std::vector<std::string> names;
    std::string cursor = "0";
    do {
      std::vector<std::string> command{"SCAN", cursor};
      command.insert(command.end(), options.begin(), options.end());
      const std::vector<std::string> words = bulks_of(run(command));
      cursor = words.at(0);
      names.insert(names.end(), words.begin() + 1, words.end());
    } while (cursor != "0");
    std::sort(names.begin(), names.end());
    return names;
  }
  // Returns the bulk strings in a reply. REQUIRES: the strings contain no line breaks.
  static std::vector<std::string> bulks_of(const std::string& reply) {
    std::vector<std::string> words;
    for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find("\r\n$", at)) {
      at = reply.find("\r\n", at + (reply[at] == '$' ? 0 : 2)) + 2;
      words.push_back(reply.substr(at, reply.find("\r\n", at) - at));
    }
    return words;
  }
};

TEST_F(ScanCommandsTest, KeysMatchesPatternsAndTheEmptyName) {
  put("one", "1");
  put("", "2");
  EXPECT_EQ(run({"KEYS", "o*"}), array({bulk("one")}));
  EXPECT_EQ(run({"KEYS", ""}), array({bulk("")}));
  EXPECT_EQ(run({"KEYS", "x*"}), array({}));
  EXPECT_EQ(bulks_of(run({"KEYS", "*"})).size(), 2U);
}

TEST_F(ScanCommandsTest, ExpiredKeysAreNotListed) {
  put("a", "1");
  run({"PEXPIRE", "a", "1"});
  advance_ms(2);
  EXPECT_EQ(run({"KEYS", "*"}), array({}));
  EXPECT_EQ(scan_all({}), std::vector<std::string>{});
  EXPECT_EQ(run({"RANDOMKEY"}), kNull);
}

TEST_F(ScanCommandsTest, ExpiredKeysThatAreMetAreDeleted) {
  for (const std::vector<std::string>& listing :
       std::vector<std::vector<std::string>>{{"SCAN", "0"}, {"KEYS", "*"}, {"RANDOMKEY"}}) {
    for (const char* const key : {"a", "b"}) {
      put(key, "1");
      run({"PEXPIRE", key, "1"});
    }
    advance_ms(2);
    EXPECT_EQ(keyspace_.db_size(0), 2U);
    run({"MULTI"});
    run(listing);
    run({"EXEC"});
    EXPECT_EQ(keyspace_.db_size(0), 2U) << "inside EXEC nothing more is locked";
    run(listing);
    EXPECT_EQ(keyspace_.db_size(0), 0U) << listing[0];
  }
}

TEST_F(ScanCommandsTest, ScanSeesEveryKeyOnce) {
  std::vector<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    expected.push_back("key:" + std::to_string(i));
    put(expected.back(), "v");
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(scan_all({}), expected);
  EXPECT_EQ(scan_all({"COUNT", "1"}), expected);
  EXPECT_EQ(scan_all({"COUNT", "9223372036854775807"}), expected);
  EXPECT_EQ(scan_all({"MATCH", "key:99?"}).size(), 10U);
}

TEST_F(ScanCommandsTest, ScanTypeTellsFiltersFromStrings) {
  put("a", "1");
  put_filter("f", "item");
  EXPECT_EQ(scan_all({"TYPE", "string"}), std::vector<std::string>{"a"});
  EXPECT_EQ(scan_all({"type", "mbbloom--"}), std::vector<std::string>{"f"});
  EXPECT_EQ(scan_all({"TYPE", "hash"}), std::vector<std::string>{});
}

TEST_F(ScanCommandsTest, ScanRefusesWhatRedisRefuses) {
  for (const char* cursor : {"x", " 0", "1x", "18446744073709551616"}) {
    EXPECT_EQ(run({"SCAN", cursor}), error(kInvalidCursor)) << cursor;
  }
  for (const char* cursor : {"", "+0", "-0", "00"}) {
    EXPECT_EQ(run({"SCAN", cursor}), array({bulk("0"), array({})})) << cursor;
  }
  EXPECT_EQ(run({"SCAN", "0", "COUNT", "0"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"SCAN", "0", "COUNT", "x"}), error(protocol::kNotAnInteger));
  EXPECT_EQ(run({"SCAN", "0", "MATCH"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"SCAN", "0", "NOPE", "1"}), error(protocol::kSyntaxError));
}

TEST_F(ScanCommandsTest, ForeignCursorsAreHarmless) {
  put("a", "1");
  for (const char* cursor : {"1", "63", "64", "18446744073709551615", "-1"}) {
    EXPECT_TRUE(run({"SCAN", cursor, "COUNT", "100"}).starts_with("*2\r\n")) << cursor;
  }
}

TEST_F(ScanCommandsTest, RandomkeyNamesAKeyOfTheDatabase) {
  EXPECT_EQ(run({"RANDOMKEY"}), kNull);
  put("a", "1");
  EXPECT_EQ(run({"RANDOMKEY"}), bulk("a"));
  run({"SELECT", "1"});
  EXPECT_EQ(run({"RANDOMKEY"}), kNull);
}

TEST_F(ScanCommandsTest, KeyspaceWideCommandsRunInsideExec) {
  put("a", "1");
  run({"MULTI"});
  run({"KEYS", "*"});
  run({"SCAN", "0"});
  run({"RANDOMKEY"});
  run({"DBSIZE"});
  run({"FLUSHALL"});
  run({"DBSIZE"});
  EXPECT_EQ(run({"EXEC"}), array({array({bulk("a")}), array({bulk("0"), array({bulk("a")})}),
                                  bulk("a"), integer(1), kOk, integer(0)}));
}

}  // namespace
}  // namespace server
