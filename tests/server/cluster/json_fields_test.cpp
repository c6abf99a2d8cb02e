// SPDX-License-Identifier: MIT
#include "server/cluster/json_fields.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace server::cluster {
namespace {

namespace json = boost::json;

// Reads the object {"m": <value>}. Returns the text of the fault; empty if there was none.
std::string fault_of(const std::string& value, const std::function<void(const JsonField&)>& read) {
  const std::string text = R"({"m":)" + value + "}";
  const auto parsed = parse_json("doc", text, 1000, [&](const json::object& object) {
    read(JsonField(object, "m"));
    return true;
  });
  return parsed ? "" : parsed.error().message;
}

TEST(JsonFieldsTest, ReadsMembersByType) {
  const json::object object = parse_json_object(
      R"({"text":"a","number":7,"flag":true,"texts":["a","b"],"inner":{"x":1},"none":null})", 1000);
  EXPECT_EQ(JsonField(object, "text").text(), "a");
  EXPECT_EQ(JsonField(object, "number").number(), 7U);
  EXPECT_TRUE(JsonField(object, "flag").flag_or(false));
  EXPECT_EQ(JsonField(object, "texts").texts(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(JsonField(JsonField(object, "inner").object(), "x").number(), 1U);
  EXPECT_FALSE(JsonField(object, "none").exists());
  EXPECT_FALSE(JsonField(object, "other").exists());
}

TEST(JsonFieldsTest, MissingMembersHaveDefaults) {
  const json::object object;
  EXPECT_EQ(JsonField(object, "m").text_or("x"), "x");
  EXPECT_EQ(JsonField(object, "m").number_or(3), 3U);
  EXPECT_TRUE(JsonField(object, "m").flag_or(true));
}

TEST(JsonFieldsTest, FaultsNameTheMember) {
  const auto text = [](const JsonField& field) { (void)field.text(); };
  EXPECT_EQ(fault_of("null", text), "ERR doc: 'm' is missing");
  EXPECT_EQ(fault_of("1", text), "ERR doc: 'm' is no string");
  EXPECT_EQ(fault_of("1", [](const JsonField& field) { (void)field.text_or(""); }),
            "ERR doc: 'm' is no string");
  EXPECT_EQ(fault_of("1", [](const JsonField& field) { (void)field.object(); }),
            "ERR doc: 'm' is no object");
  EXPECT_EQ(fault_of("{}", [](const JsonField& field) { (void)field.array(); }),
            "ERR doc: 'm' is no array");
  EXPECT_EQ(fault_of(R"(["a",1])", [](const JsonField& field) { (void)field.texts(); }),
            "ERR doc: 'm' is no string");
  EXPECT_EQ(fault_of("1", [](const JsonField& field) { (void)field.flag_or(false); }),
            "ERR doc: 'm' is no boolean");
}

TEST(JsonFieldsTest, NumbersAreWholeAndBounded) {
  const auto up_to_nine = [](const JsonField& field) { (void)field.number(9); };
  EXPECT_EQ(fault_of("9", up_to_nine), "");
  for (const std::string wrong : {"10", "-1", "1.5", "\"1\"", "1e30", "true"}) {
    EXPECT_EQ(fault_of(wrong, up_to_nine), "ERR doc: 'm' is no number up to 9") << wrong;
  }
}

TEST(JsonFieldsTest, OnlyObjectsOfTheSizeAreParsed) {
  const auto parse = [](const std::string& text) {
    const auto parsed = parse_json("doc", text, 20, [](const json::object&) { return true; });
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_EQ(parse("{}"), "");
  EXPECT_EQ(parse("[]"), "ERR doc: no JSON object");
  EXPECT_EQ(parse("{").substr(0, 17), "ERR doc: not JSON");
  EXPECT_EQ(parse(std::string(21, ' ')), "ERR doc: larger than 20 bytes");
}

}  // namespace
}  // namespace server::cluster
