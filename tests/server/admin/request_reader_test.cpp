// SPDX-License-Identifier: MIT
#include "server/admin/request_reader.h"

#include <gtest/gtest.h>

#include <random>

namespace server::admin {
namespace {

using Status = RequestReader::Status;

const std::string kRequest =
    "GET /api/filter?key=a%20b&x=&y HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Basic eA==\r\n"
    "\r\n";

void expect_request(const HttpRequest& request) {
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/api/filter");
  EXPECT_EQ(request.parameter("key"), "a b");
  EXPECT_EQ(request.parameter("x"), "");
  EXPECT_EQ(request.parameter("y"), "");
  EXPECT_EQ(request.host, "localhost:1");
  EXPECT_EQ(request.authorization, "Basic eA==");
  EXPECT_TRUE(request.keeps_alive);
}

TEST(RequestReaderTest, TheHeaderOfWritesIsSeen) {
  for (const bool is_there : {false, true}) {
    RequestReader reader;
    reader.feed("POST /api/add HTTP/1.1\r\nContent-Length: 0\r\n");
    if (is_there) reader.feed("x-bloomery-write: yes\r\n");
    reader.feed("\r\n");
    ASSERT_EQ(reader.next(), Status::kRequest);
    EXPECT_EQ(reader.request().method, "POST");
    EXPECT_EQ(reader.request().declares_write, is_there);
  }
}

// Returns the status with which the bytes are rejected; 200 if they are a request, 0 if more bytes
// are needed.
unsigned verdict(const std::string& bytes) {
  RequestReader reader;
  reader.feed(bytes);
  switch (reader.next()) {
    case Status::kNeedMore:
      return 0;
    case Status::kRequest:
      return 200;
    case Status::kError:
      EXPECT_EQ(reader.next(), Status::kError);
      return reader.refusal().status;
  }
  return 0;
}

TEST(RequestReaderTest, ReadsARequestHoweverItIsCut) {
  for (size_t cut = 0; cut <= kRequest.size(); ++cut) {
    RequestReader reader;
    reader.feed(kRequest.substr(0, cut));
    if (cut < kRequest.size()) {
      EXPECT_EQ(reader.next(), Status::kNeedMore) << cut;
      EXPECT_EQ(reader.is_inside_request(), cut > 0);
    }
    reader.feed(kRequest.substr(cut));
    ASSERT_EQ(reader.next(), Status::kRequest) << cut;
    expect_request(reader.request());
  }
}

TEST(RequestReaderTest, ReadsARequestByteByByte) {
  RequestReader reader;
  for (size_t i = 0; i + 1 < kRequest.size(); ++i) {
    reader.feed(kRequest.substr(i, 1));
    ASSERT_EQ(reader.next(), Status::kNeedMore) << i;
  }
  reader.feed("\n");
  ASSERT_EQ(reader.next(), Status::kRequest);
  expect_request(reader.request());
}

TEST(RequestReaderTest, RequestsMayComeTogether) {
  RequestReader reader;
  reader.feed(kRequest + "HEAD / HTTP/1.0\r\n\r\n");
  ASSERT_EQ(reader.next(), Status::kRequest);
  expect_request(reader.request());
  EXPECT_TRUE(reader.is_inside_request());
  ASSERT_EQ(reader.next(), Status::kRequest);
  EXPECT_EQ(reader.request().method, "HEAD");
  EXPECT_FALSE(reader.request().keeps_alive);
  EXPECT_EQ(reader.next(), Status::kNeedMore);
}

TEST(RequestReaderTest, HeadersAreBounded) {
  const std::string line = "GET / HTTP/1.1\r\n";
  const std::string filler(RequestReader::kHeaderBytesMax, 'a');
  EXPECT_EQ(verdict(line + "A: " + filler), 431U);
  EXPECT_EQ(verdict("GET /" + filler), 431U);
  EXPECT_EQ(verdict(filler), 431U);
  EXPECT_EQ(verdict(line + "A: " + filler.substr(100) + "\r\n\r\n"), 200U);
}

TEST(RequestReaderTest, BodiesAreRefused) {
  EXPECT_EQ(verdict("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 413U);
  EXPECT_EQ(verdict("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            413U);
  EXPECT_EQ(verdict("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 413U);
  EXPECT_EQ(verdict("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            413U);
  EXPECT_EQ(verdict("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), 200U);
}

TEST(RequestReaderTest, OtherMethodsAreRefusedBeforeTheirBody) {
  for (const std::string method : {"PUT", "DELETE", "PATCH"}) {
    RequestReader reader;
    reader.feed(method + " / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
    ASSERT_EQ(reader.next(), RequestReader::Status::kError) << method;
    EXPECT_EQ(reader.refusal().status, 405U) << method;
    ASSERT_EQ(reader.refusal().headers.size(), 1U) << method;
    EXPECT_EQ(reader.refusal().headers[0].second, "GET, HEAD");
  }
  EXPECT_EQ(verdict("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            405U);
}

TEST(RequestReaderTest, ARefusedHeadIsKnown) {
  for (const std::string rest :
       {"/%zz HTTP/1.1\r\n\r\n", "/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n"}) {
    for (const std::string method : {"HEAD", "GET"}) {
      RequestReader reader;
      reader.feed(method + " " + rest);
      ASSERT_EQ(reader.next(), RequestReader::Status::kError) << rest;
      EXPECT_EQ(reader.refuses_head(), method == "HEAD") << rest;
    }
  }
}

TEST(RequestReaderTest, RejectsMalformedRequests) {
  for (const std::string bytes :
       {"*1\r\n$4\r\nPING\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET http://other/ HTTP/1.1\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n",
        "GET /%zz HTTP/1.1\r\n\r\n", "GET /?a=%0 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    EXPECT_EQ(verdict(bytes), 400U) << bytes;
  }
  EXPECT_EQ(verdict("GET / HTTP/2.0\r\n\r\n"), 505U);
}

TEST(RequestReaderTest, NoiseIsReadOrRejected) {
  constexpr int kRounds = 2000;
  std::mt19937 random(7);
  int rejected = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    std::string bytes = kRequest;
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    RequestReader reader;
    reader.feed(bytes);
    Status status = reader.next();
    for (; status == Status::kRequest; status = reader.next()) {
      ASSERT_TRUE(reader.request().path.starts_with('/')) << reader.request().path;
    }
    if (status != Status::kError) continue;
    ++rejected;
    EXPECT_GE(reader.refusal().status, 400U);
    EXPECT_EQ(reader.next(), Status::kError) << "nothing is parsed after an error";
  }
  EXPECT_GT(rejected, 0);
  EXPECT_LT(rejected, kRounds);
}

}  // namespace
}  // namespace server::admin
