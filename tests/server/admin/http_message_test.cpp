// SPDX-License-Identifier: MIT
#include "server/admin/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace server::admin {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpMessageTest, ResponseHasLengthAndPolicy) {
  HttpResponse response = plain_response(503, "later");
  response.headers.emplace_back("Allow", "GET");
  const std::string bytes = encode(response, Ending::kCloses, false);
  EXPECT_THAT(bytes, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nContent-Length: 6\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "));
  EXPECT_THAT(bytes, HasSubstr("\r\nAllow: GET\r\n"));
  EXPECT_THAT(bytes, Not(HasSubstr("Access-Control")));
  EXPECT_THAT(bytes, EndsWith("\r\n\r\nlater\n"));
}

TEST(HttpMessageTest, HeadHasTheLengthAndNoBody) {
  const std::string bytes = encode(plain_response(200, "ok"), Ending::kKeepsAlive, true);
  EXPECT_THAT(bytes, HasSubstr("\r\nContent-Length: 3\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_THAT(bytes, EndsWith("\r\n\r\n"));
}

TEST(HttpMessageTest, DecodesEscapes) {
  EXPECT_EQ(decode_url("/a%20b+c", UrlPart::kPath), "/a b+c");
  EXPECT_EQ(decode_url("a%2Bb+c%00", UrlPart::kQuery), std::string("a+b c\0", 6));
}

TEST(HttpMessageTest, RefusesBrokenEscapes) {
  for (const char* text : {"%", "%1", "a%g0", "%0x", "%%20"}) {
    EXPECT_EQ(decode_url(text, UrlPart::kQuery), std::nullopt) << text;
  }
  EXPECT_EQ(decode_url("/%00", UrlPart::kPath), std::nullopt);
}

TEST(HttpMessageTest, EveryByteSurvivesItsEscape) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(decode_url(encode_url(bytes), UrlPart::kQuery), bytes);
}

TEST(HttpMessageTest, FirstParameterOfANameCounts) {
  HttpRequest request;
  request.query = {{"a", "1"}, {"a", "2"}};
  EXPECT_EQ(request.parameter("a"), "1");
  EXPECT_EQ(request.parameter("b"), std::nullopt);
}

}  // namespace
}  // namespace server::admin
