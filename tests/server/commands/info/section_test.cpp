// SPDX-License-Identifier: MIT
#include "server/commands/info/section.h"

#include <gtest/gtest.h>

namespace server::info {
namespace {

TEST(InfoLines, ValuesStayOnTheirLine) {
  std::string text;
  Lines lines(text);
  lines.field("master_host", std::string("h\r\nrole:master\t\x7f"));
  lines.field("reason", "a\nb");
  lines.field("count", 3);
  EXPECT_EQ(text, "master_host:h\\r\\nrole:master\\t\\x7f\r\nreason:a\\nb\r\ncount:3\r\n");
}

}  // namespace
}  // namespace server::info
