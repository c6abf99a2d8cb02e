// SPDX-License-Identifier: MIT
//
// The cases are those of Redis 8.4's tests.
#include <gmock/gmock.h>

#include "persistence/journal.h"
#include "protocol/error_texts.h"
#include "server/commands/strings/value_condition.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

constexpr std::string_view kEmptyDigest = "2d06800538d394c2";

class CompareCommandsTest : public KeyTest {
 protected:
  std::string journalled() {
    std::string taken;
    journal_.take(taken);
    return taken;
  }
};

TEST_F(CompareCommandsTest, DigestIsOfStringsOnly) {
  put("a", "");
  put_filter("f", "x");
  EXPECT_EQ(run({"DIGEST", "a"}), bulk(kEmptyDigest));
  EXPECT_EQ(run({"DIGEST", "none"}), kNull);
  EXPECT_EQ(run({"DIGEST", "f"}), error(kWrongType));
  put("a", "12345");
  put("b", "12345");
  EXPECT_EQ(run({"DIGEST", "a"}), run({"DIGEST", "b"}));
}

TEST_F(CompareCommandsTest, DelexWithoutAConditionDeletesAnything) {
  put("a", "1");
  put_filter("f", "x");
  EXPECT_EQ(run({"DELEX", "a"}), integer(1));
  EXPECT_EQ(run({"DELEX", "f"}), integer(1));
  EXPECT_EQ(run({"DELEX", "a"}), integer(0));
}

TEST_F(CompareCommandsTest, DelifeqDeletesAnEqualString) {
  put("a", "token");
  put_filter("f", "x");
  EXPECT_EQ(run({"DELIFEQ", "a", "other"}), integer(0));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(1));
  EXPECT_EQ(run({"DELIFEQ", "none", "token"}), integer(0));
  EXPECT_EQ(run({"DELIFEQ", "f", "x"}), error(kWrongType));
  (void)journalled();
  EXPECT_EQ(run({"DELIFEQ", "a", "token"}), integer(1));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
  EXPECT_NE(journalled().find("DEL"), std::string::npos);
}

TEST_F(CompareCommandsTest, DelexDeletesWhatMeetsTheCondition) {
  const std::vector<std::pair<std::vector<std::string>, bool>> cases = {
      {{"IFEQ", ""}, true},
      {{"ifeq", "x"}, false},
      {{"IFNE", "x"}, true},
      {{"IFNE", ""}, false},
      {{"IFDEQ", std::string(kEmptyDigest)}, true},
      {{"IFDNE", std::string(kEmptyDigest)}, false},
      {{"IFDNE", std::string(16, '0')}, true},
  };
  for (const auto& [words, goes] : cases) {
    put("a", "");
    EXPECT_EQ(run({"DELEX", "a", words[0], words[1]}), integer(goes ? 1 : 0)) << words[0];
    EXPECT_EQ(entry_of("a") == nullptr, goes) << words[0];
    EXPECT_EQ(run({"DELEX", "none", words[0], "abc"}), integer(0)) << words[0];
  }
}

TEST_F(CompareCommandsTest, DelexRefusesWhatMakesNoSense) {
  put("a", "1");
  put_filter("f", "x");
  const std::string arity = error(protocol::wrong_arity("delex"));
  EXPECT_EQ(run({"DELEX", "a", "IFEQ"}), arity);
  EXPECT_EQ(run({"DELEX", "none", "IFEQ"}), arity);
  EXPECT_EQ(run({"DELEX", "a", "IFEQ", "1", "2"}), arity);
  EXPECT_THAT(run({"DELEX", "a", "IF", "1"}), is_error("ERR", "condition"));
  EXPECT_EQ(run({"DELEX", "a", "IFDEQ", "1234"}), error(kNoDigest));
  EXPECT_THAT(run({"DELEX", "f", "IFEQ", "1"}), is_error("ERR", "string"));
  EXPECT_NE(entry_of("a"), nullptr);
}

TEST_F(CompareCommandsTest, DelexIsJournalledAsDelAndSeenByWatchers) {
  put("a", "1");
  journal_.set_active(true);
  EXPECT_FALSE(watcher_notices("a", [&] { run({"DELEX", "a", "IFEQ", "2"}); }));
  EXPECT_EQ(journalled(), "");
  EXPECT_TRUE(watcher_notices("a", [&] { run({"DELEX", "a", "IFEQ", "1"}); }));
  EXPECT_NE(journalled().find("*2\r\n$3\r\nDEL\r\n$1\r\na\r\n"), std::string::npos);
}

TEST_F(CompareCommandsTest, SetStoresIfTheValueMeetsTheCondition) {
  const std::string digest(kEmptyDigest);
  struct Case {
    std::vector<std::string> words;
    bool with_key;
    bool without_key;
  };
  for (const auto& [words, with_key, without_key] : std::vector<Case>{
           {{"IFEQ", ""}, true, false},
           {{"IFEQ", "x"}, false, false},
           {{"IFNE", "x"}, true, true},
           {{"IFNE", ""}, false, true},
           {{"IFDEQ", digest}, true, false},
           {{"IFDNE", digest}, false, true},
           {{"ifdne", std::string(16, '1')}, true, true},
       }) {
    put("a", "");
    EXPECT_EQ(run({"SET", "a", "new", words[0], words[1]}), with_key ? kOk : kNull) << words[0];
    EXPECT_EQ(text_of("a"), with_key ? "new" : "") << words[0];
    run({"DEL", "a"});
    put("a", "");
    EXPECT_EQ(run({"SET", "a", "new", words[0], words[1], "GET", "EX", "10"}), bulk(""));
    EXPECT_EQ(run({"TTL", "a"}), integer(with_key ? 10 : -1)) << words[0];
    run({"DEL", "b"});
    EXPECT_EQ(run({"SET", "b", "new", words[0], words[1]}), without_key ? kOk : kNull) << words[0];
    run({"DEL", "b"});
    EXPECT_EQ(run({"SET", "b", "new", "GET", words[0], words[1]}), kNull) << words[0];
    EXPECT_EQ(entry_of("b") != nullptr, without_key) << words[0];
  }
}

TEST_F(CompareCommandsTest, SetRefusesWhatMakesNoSense) {
  put("a", "1");
  put_filter("f", "x");
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"IFEQ"},
           {"IFEQ", "1", "NX"},
           {"XX", "IFEQ", "1"},
           {"IFEQ", "1", "IFNE", "1"},
       }) {
    std::vector<std::string> command = {"SET", "a", "2"};
    command.insert(command.end(), options.begin(), options.end());
    EXPECT_EQ(run(command), error(protocol::kSyntaxError));
  }
  EXPECT_EQ(run({"SET", "f", "2", "IFEQ", "1"}), error(kWrongType));
  EXPECT_EQ(run({"SET", "f", "2", "IFDNE", "1"}), error(kWrongType));
  EXPECT_EQ(run({"SET", "a", "2", "IFDEQ", "1", "GET"}), error(kNoDigest));
  EXPECT_EQ(run({"SET", "none", "2", "IFDEQ", "1"}), kNull) << "nothing to compare with";
  EXPECT_EQ(run({"SET", "a", "2", "IFEQ", "x", "IFEQ", "1"}), kOk) << "the last one counts";
  EXPECT_EQ(text_of("a"), "2");
}

TEST_F(CompareCommandsTest, TheJournalHasNoConditions) {
  put("a", "1");
  journal_.set_active(true);
  run({"SET", "a", "2", "IFEQ", "1"});
  EXPECT_NE(journalled().find("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n2\r\n"), std::string::npos);
}

}  // namespace
}  // namespace server
