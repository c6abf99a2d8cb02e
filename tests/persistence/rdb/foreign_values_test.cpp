// SPDX-License-Identifier: MIT
#include "persistence/rdb/foreign_values.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "persistence/bytes/byte_codec.h"

namespace persistence {
namespace {

struct ForeignCase {
  uint8_t type;
  const char* name;
  RdbDialect dialect;
  std::function<void(ByteWriter&)> write;
};

void text(ByteWriter& out, std::string_view value) {
  out.string(value, Packing::kIfSmaller);
}

void texts(ByteWriter& out, int count) {
  for (int i = 0; i < count; ++i) text(out, std::string(static_cast<size_t>(i) * 30, 'x'));
}

void raw(ByteWriter& out, size_t size) {
  out.bytes(std::string(size, '\xFF'));
}

void one_string(ByteWriter& out) {
  text(out, "a packed structure");
}

void strings(ByteWriter& out) {
  out.length(3);
  texts(out, 3);
}

void pairs(ByteWriter& out) {
  out.length(2);
  texts(out, 4);
}

void text_scores(ByteWriter& out) {
  out.length(4);
  text(out, "member");
  out.u8(3);
  out.bytes("1.5");
  for (const int special : {253, 254, 255}) {
    text(out, "member");
    out.u8(static_cast<uint8_t>(special));
  }
}

void scores(ByteWriter& out) {
  out.length(2);
  for (int i = 0; i < 2; ++i) {
    text(out, "member");
    out.f64(0.5);
  }
}

void containers(ByteWriter& out) {
  out.length(2);
  for (int i = 0; i < 2; ++i) {
    out.length(2);
    text(out, "listpack");
  }
}

void hash_with_expiry(ByteWriter& out, bool has_earliest) {
  if (has_earliest) raw(out, 8);
  out.length(2);
  for (int i = 0; i < 2; ++i) {
    out.length(100000);
    texts(out, 2);
  }
}

void stream(ByteWriter& out, int version) {
  out.length(2);
  texts(out, 4);
  for (int i = 0; i < (version >= 2 ? 8 : 3); ++i) out.length(1000);
  out.length(2);
  for (int group = 0; group < 2; ++group) {
    text(out, "group");
    for (int i = 0; i < (version >= 2 ? 3 : 2); ++i) out.length(7);
    out.length(2);
    for (int i = 0; i < 2; ++i) {
      raw(out, 24);
      out.length(1);
    }
    out.length(1);
    text(out, "consumer");
    raw(out, version >= 3 ? 16 : 8);
    out.length(2);
    raw(out, 32);
    if (version < 5) continue;
    out.length(2);
    raw(out, 32);
  }
  if (version < 4) return;
  for (int i = 0; i < 2; ++i) out.length(100);
  out.length(2);
  for (int producer = 0; producer < 2; ++producer) {
    text(out, "producer");
    out.length(1);
    text(out, "message");
    for (int i = 0; i < 2; ++i) out.length(1);
  }
  for (int i = 0; i < 2; ++i) out.length(5);
}

void array(ByteWriter& out, bool has_insertion) {
  out.length(4);
  out.length(has_insertion ? 1 : 0);
  if (has_insertion) out.length(9);
  for (const uint64_t tag : {0, 1, 2, 3}) {
    out.length(tag);  // index of the array element
    out.length(tag);
    if (tag == 1 || tag == 2) {
      raw(out, 8);
    } else {
      text(out, "element");
    }
  }
}

void template_hash(ByteWriter& out, bool is_array) {
  out.length(2);
  texts(out, is_array ? 4 : 3);
}

std::vector<ForeignCase> cases() {
  constexpr auto kRedis = RdbDialect::kRedis;
  constexpr auto kValkey = RdbDialect::kValkey;
  std::vector<ForeignCase> all = {
      {1, "list", kRedis, strings},
      {2, "set", kRedis, strings},
      {3, "zset", kRedis, text_scores},
      {4, "hash", kRedis, pairs},
      {5, "zset", kRedis, scores},
      {9, "hash", kRedis, one_string},
      {10, "list", kRedis, one_string},
      {11, "set", kRedis, one_string},
      {12, "zset", kRedis, one_string},
      {13, "hash", kRedis, one_string},
      {14, "list", kRedis, strings},
      {15, "stream", kRedis, [](ByteWriter& out) { stream(out, 1); }},
      {16, "hash", kRedis, one_string},
      {17, "zset", kRedis, one_string},
      {18, "list", kRedis, containers},
      {19, "stream", kRedis, [](ByteWriter& out) { stream(out, 2); }},
      {20, "set", kRedis, one_string},
      {21, "stream", kRedis, [](ByteWriter& out) { stream(out, 3); }},
      {22, "hash", kRedis, [](ByteWriter& out) { hash_with_expiry(out, false); }},
      {23, "hash", kRedis, one_string},
      {24, "hash", kRedis, [](ByteWriter& out) { hash_with_expiry(out, true); }},
      {25, "hash", kRedis,
       [](ByteWriter& out) {
         raw(out, 8);
         one_string(out);
       }},
      {26, "stream", kRedis, [](ByteWriter& out) { stream(out, 4); }},
      {27, "stream", kRedis, [](ByteWriter& out) { stream(out, 5); }},
      {28, "array", kRedis, [](ByteWriter& out) { array(out, false); }},
      {28, "array", kRedis, [](ByteWriter& out) { array(out, true); }},
      {29, "hash", kRedis, [](ByteWriter& out) { template_hash(out, false); }},
      {30, "hash", kRedis, one_string},
      {31, "hash", kRedis, [](ByteWriter& out) { template_hash(out, true); }},
      {33, "gcra", kRedis, [](ByteWriter& out) { out.length(1'000'000); }},
      {18, "list", kValkey, containers},
      {22, "hash", kValkey,
       [](ByteWriter& out) {
         out.length(2);
         for (int i = 0; i < 2; ++i) {
           texts(out, 2);
           raw(out, 8);
         }
       }},
  };
  return all;
}

TEST(ForeignValues, EachFormIsSkippedExactly) {
  for (const ForeignCase& c : cases()) {
    SCOPED_TRACE(int{c.type});
    EXPECT_EQ(foreign_type_name(c.type, c.dialect), c.name);
    std::string bytes;
    ByteWriter writer(bytes);
    c.write(writer);
    const std::string followed = bytes + "next";
    StreamReader whole(followed);
    skip_foreign_value(whole, c.type, c.dialect);
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    EXPECT_EQ(whole.read_ahead(), "next");
    for (size_t size = 0; size < bytes.size(); ++size) {
      StreamReader cut(std::string_view(bytes).substr(0, size));
      skip_foreign_value(cut, c.type, c.dialect);
      EXPECT_FALSE(cut.ok()) << size;
    }
  }
}

TEST(ForeignValues, FalseCountsEndWithTheBytes) {
  for (const ForeignCase& c : cases()) {
    std::string bytes;
    ByteWriter writer(bytes);
    for (int i = 0; i < 4; ++i) writer.length(~uint64_t{0});
    StreamReader reader(bytes);
    skip_foreign_value(reader, c.type, c.dialect);
    if (c.type == 33) continue;  // a value of type 33 does not begin with a count
    EXPECT_FALSE(reader.ok()) << int{c.type};
  }
}

TEST(ForeignValues, OnlyKnownFormsCanBeSkipped) {
  for (const ForeignCase& c : cases()) EXPECT_TRUE(can_skip_foreign(c.type, c.dialect));
  EXPECT_TRUE(can_skip_foreign(32, RdbDialect::kRedis));
  for (const uint8_t type : {0, 6, 7, 8, 34}) {
    EXPECT_FALSE(can_skip_foreign(type, RdbDialect::kRedis)) << int{type};
  }
  EXPECT_FALSE(can_skip_foreign(23, RdbDialect::kValkey));
}

TEST(ForeignValues, UnknownFormsFail) {
  for (const int type : {0, 6, 7, 8, 34, 200}) {
    StreamReader reader(std::string_view("anything at all"));
    skip_foreign_value(reader, static_cast<uint8_t>(type), RdbDialect::kRedis);
    EXPECT_FALSE(reader.ok()) << type;
  }
  EXPECT_EQ(foreign_type_name(34, RdbDialect::kRedis), "type 34");
  EXPECT_EQ(foreign_type_name(25, RdbDialect::kValkey), "type 25");
}

}  // namespace
}  // namespace persistence
