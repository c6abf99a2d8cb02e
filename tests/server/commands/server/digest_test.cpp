// SPDX-License-Identifier: MIT
#include "server/commands/server/digest.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/key_test.h"

namespace server {
namespace {

class DigestTest : public KeyTest {
 protected:
  std::string digest() { return to_text(keyspace_digest(keyspace_)); }
  std::string value(const std::string& name) { return to_text(value_digest(*entry_of(name))); }

  const std::string kNothing = std::string(40, '0');
};

TEST_F(DigestTest, NothingIsZeros) {
  EXPECT_EQ(digest(), kNothing);
  put("a", "1");
  EXPECT_NE(digest(), kNothing);
  run({"DEL", "a"});
  EXPECT_EQ(digest(), kNothing);
}

TEST_F(DigestTest, TheOrderOfWritingDoesNotMatter) {
  put("a", "1");
  put("b", "2");
  const std::string before = digest();
  run({"FLUSHALL"});
  put("b", "2");
  put("a", "1");
  EXPECT_EQ(digest(), before);
}

TEST_F(DigestTest, NamesAndValuesDoNotRunIntoEachOther) {
  put("ab", "c");
  const std::string before = digest();
  run({"FLUSHALL"});
  put("a", "bc");
  EXPECT_NE(digest(), before);
}

TEST_F(DigestTest, TheDatabaseAndTheExpiryBelongToIt) {
  put("a", "1");
  const std::string in_first = digest();
  run({"MOVE", "a", "1"});
  EXPECT_NE(digest(), in_first);
  run({"SELECT", "1"});
  run({"MOVE", "a", "0"});
  EXPECT_EQ(digest(), in_first);
  run({"SELECT", "0"});
  run({"EXPIRE", "a", "100"});
  EXPECT_NE(digest(), in_first);
}

TEST_F(DigestTest, OfAValueIsWithoutItsNameAndExpiry) {
  put("a", "same");
  put("b", "same");
  run({"EXPIRE", "b", "100"});
  EXPECT_EQ(value("a"), value("b"));
  put("b", "other");
  EXPECT_NE(value("a"), value("b"));
}

TEST_F(DigestTest, ANumberIsItsText) {
  put("a", "123");
  run({"SET", "b", "12"});
  run({"APPEND", "b", "3"});
  EXPECT_EQ(value("a"), value("b"));
}

TEST_F(DigestTest, FiltersDifferByTheirBits) {
  for (const char* const name : {"f", "g"}) run({"BF.RESERVE", name, "0.01", "100"});
  EXPECT_EQ(value("f"), value("g"));
  run({"BF.ADD", "f", "a"});
  EXPECT_NE(value("f"), value("g"));
  run({"BF.ADD", "g", "a"});
  EXPECT_EQ(value("f"), value("g"));
}

TEST_F(DigestTest, AFilterIsNotTheStringOfItsBytes) {
  put("empty", "");
  run({"BF.RESERVE", "f", "0.01", "100"});
  EXPECT_NE(value("f"), value("empty"));
}

TEST(DigestTextTest, IsFortyHexadecimalDigits) {
  Digest digest{};
  digest[0] = 0xab;
  digest[19] = 1;
  EXPECT_EQ(to_text(digest), "ab" + std::string(36, '0') + "01");
}

}  // namespace
}  // namespace server
