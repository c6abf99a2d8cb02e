// SPDX-License-Identifier: MIT
#include "server/dispatch/command_reply.h"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "protocol/reply_parser.h"
#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"
#include "tests/support/reply_text.h"

namespace server {
namespace {

using protocol::Reply;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CommandReplyTest : public CommandTest {
 protected:
  Reply reply_of(const std::vector<std::string>& command) {
    const std::string bytes = run(command);
    protocol::ReplyParser parser;
    EXPECT_EQ(parser.parse(bytes), protocol::ReplyParser::Status::kReply);
    return std::move(parser.reply());
  }
  // Returns an element of COMMAND INFO of one command.
  std::string element(const std::string& name, size_t index) {
    const Reply info = reply_of({"COMMAND", "INFO", name});
    if (info.elements.size() != 1 || info.elements[0].elements.size() <= index) return "missing";
    return reply_text(info.elements[0].elements[index]);
  }
  const Command& row(const std::string& name) { return *registry_->find(name)->row; }
};

TEST_F(CommandReplyTest, InfoHasTenElements) {
  EXPECT_EQ(reply_of({"COMMAND", "INFO", "get"}).elements.at(0).elements.size(), 10U);
  EXPECT_EQ(element("get", 0), "get");
  EXPECT_EQ(element("get", 1), ":2");
  EXPECT_EQ(element("mset", 1), ":-3");
}

TEST_F(CommandReplyTest, FlagsAreThoseOfRedisInItsOrder) {
  EXPECT_EQ(element("get", 2), "[+readonly, +fast]");
  EXPECT_EQ(element("set", 2), "[+write, +denyoom]");
  EXPECT_EQ(element("ping", 2), "[+fast]");
}

TEST_F(CommandReplyTest, KeysHaveFirstLastAndStep) {
  const auto keys = [this](const std::string& name) {
    return element(name, 3) + element(name, 4) + element(name, 5);
  };
  EXPECT_EQ(keys("get"), ":1:1:1");
  EXPECT_EQ(keys("mset"), ":1:-1:2");
  EXPECT_EQ(keys("bitop"), ":2:-1:1");
  EXPECT_EQ(keys("ping"), ":0:0:0");
}

TEST_F(CommandReplyTest, CategoriesAreGivenOrImplied) {
  EXPECT_EQ(element("get", 6), "[+@read, +@string, +@fast]");
  EXPECT_EQ(element("set", 6), "[+@write, +@string, +@slow]");
  EXPECT_THAT(category_names(row("bf.add")), Contains("@bloom"));
  EXPECT_THAT(category_names(row("get")), Not(Contains("@slow")));
}

TEST_F(CommandReplyTest, ACategoryIsKnownInAnyCase) {
  EXPECT_TRUE(has_category(row("get"), "STRING"));
  EXPECT_TRUE(has_category(row("get"), "fast"));
  EXPECT_FALSE(has_category(row("get"), "write"));
  EXPECT_FALSE(has_category(row("get"), "nosuch"));
}

TEST_F(CommandReplyTest, AllCategoriesAreThoseOfRedisAndOurs) {
  EXPECT_THAT(
      all_categories(),
      ElementsAre("keyspace", "read", "write", "set", "sortedset", "list", "hash", "string",
                  "bitmap", "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow",
                  "blocking", "dangerous", "connection", "transaction", "scripting", "bloom"));
}

TEST_F(CommandReplyTest, KeyUsesHaveNames) {
  EXPECT_THAT(key_use_names(kKeyRo | kKeyAccess), ElementsAre("RO", "access"));
  EXPECT_THAT(key_use_names(kKeyOw | kKeyUpdate), ElementsAre("OW", "update"));
  EXPECT_TRUE(key_use_names(0).empty());
}

TEST_F(CommandReplyTest, SubcommandsStandInsideTheirContainer) {
  const Reply info = reply_of({"COMMAND", "INFO", "object"});
  const Reply& subcommands = info.elements.at(0).elements.at(9);
  std::vector<std::string> names;
  for (const Reply& subcommand : subcommands.elements) {
    EXPECT_EQ(subcommand.elements.size(), 10U);
    names.push_back(subcommand.elements.at(0).text);
  }
  EXPECT_THAT(names, Contains("object|encoding"));
  EXPECT_THAT(names, Contains("object|help"));
}

TEST_F(CommandReplyTest, UnknownCommandsAreNull) {
  EXPECT_EQ(reply_text(reply_of({"COMMAND", "INFO", "nosuch"})), "[nil]");
}

TEST_F(CommandReplyTest, KeySpecificationsTellWhereToSearch) {
  const std::string specifications = element("mset", 8);
  EXPECT_THAT(specifications, HasSubstr("begin_search, [type, index, spec, [index, :1]]"));
  EXPECT_THAT(specifications,
              HasSubstr("find_keys, [type, range, spec, [lastkey, :-1, keystep, :2, limit, :0]]"));
}

TEST_F(CommandReplyTest, DocsTellSummaryGroupAndArguments) {
  const std::string docs = reply_text(reply_of({"COMMAND", "DOCS", "get"}));
  EXPECT_THAT(docs, HasSubstr("[get, [summary, "));
  EXPECT_THAT(docs, HasSubstr("group, string"));
  EXPECT_THAT(docs, HasSubstr("arguments, [[name, key, type, key, key_spec_index, :0]]"));
}

TEST_F(CommandReplyTest, DocsOfOurCommandsNameTheModule) {
  EXPECT_TRUE(is_module_command(row("bf.add")));
  EXPECT_FALSE(is_module_command(row("get")));
  EXPECT_THAT(reply_text(reply_of({"COMMAND", "DOCS", "bf.add"})), HasSubstr("module, bf"));
}

}  // namespace
}  // namespace server
