// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_http.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/cluster/etcd_messages.h"

namespace server::cluster {
namespace {

using Kind = EtcdHttpReader::Kind;
using Lines = std::vector<std::string>;

constexpr std::string_view kReply =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
constexpr std::string_view kStream =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "4\r\n{\"a\"\r\n4\r\n:1}\n\r\n8\r\n{}\n\n{}\n{\r\n";

TEST(EtcdEndpointTest, IsAUrlWithAPort) {
  const auto read = [](std::string_view url) {
    const auto endpoint = parse_etcd_endpoint(url);
    return endpoint ? *endpoint : EtcdEndpoint{};
  };
  EXPECT_EQ(read("http://10.0.0.1:2379"), (EtcdEndpoint{"10.0.0.1", 2379, false}));
  EXPECT_EQ(read("https://etcd-1.example/"), (EtcdEndpoint{"etcd-1.example", 2379, true}));
  EXPECT_EQ(read("http://[::1]:1"), (EtcdEndpoint{"::1", 1, false}));
  EXPECT_EQ(read("http://[::1]:1").url(), "http://[::1]:1");
  EXPECT_EQ(read("https://a:9").url(), "https://a:9");
}

TEST(EtcdEndpointTest, RefusesWhatIsNone) {
  for (const std::string_view url :
       {"", "a:1", "ftp://a:1", "http://", "http://:1", "http://a:", "http://a:0", "http://a:65536",
        "http://a:1/x", "http://a b:1", "http://a\r\n:1", "http://[::1", "http://[x]:1",
        "http://[::1]1", "http://u@a:1"}) {
    EXPECT_FALSE(parse_etcd_endpoint(url)) << url;
  }
}

TEST(EtcdHttpTest, RequestNamesHostLengthAndToken) {
  EXPECT_EQ(etcd_request({"::1", 5, false}, "/v3/kv/put", "", "{}"),
            "POST /v3/kv/put HTTP/1.1\r\nHost: [::1]:5\r\nContent-Type: application/json\r\n"
            "Grpc-Metadata-hasleader: true\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_NE(etcd_request({"a", 5, false}, "/", "t.1", "").find("\r\nAuthorization: t.1\r\n"),
            std::string::npos);
}

TEST(EtcdHttpTest, ReadsAReplyHoweverItIsCut) {
  for (size_t cut = 0; cut <= kReply.size(); ++cut) {
    EtcdHttpReader reader(Kind::kReply);
    ASSERT_TRUE(reader.feed(kReply.substr(0, cut)));
    ASSERT_EQ(reader.is_done(), cut == kReply.size());
    if (cut < kReply.size()) {
      ASSERT_TRUE(reader.feed(kReply.substr(cut)));
    }
    ASSERT_TRUE(reader.is_done());
    EXPECT_EQ(reader.status(), 200U);
    EXPECT_EQ(reader.body(), "{}");
    EXPECT_TRUE(reader.keeps_alive());
  }
}

TEST(EtcdHttpTest, ReadsAStreamByteByByte) {
  EtcdHttpReader reader(Kind::kStream);
  Lines lines;
  for (const char& c : kStream) {
    ASSERT_TRUE(reader.feed({&c, 1}));
    for (std::string& line : reader.take_lines()) lines.push_back(std::move(line));
  }
  EXPECT_EQ(lines, (Lines{R"({"a":1})", "{}", "{}"}));
  EXPECT_EQ(reader.body(), "{");
  EXPECT_FALSE(reader.is_done());
}

TEST(EtcdHttpTest, StreamOfAnErrorIsAReply) {
  EtcdHttpReader reader(Kind::kStream);
  ASSERT_TRUE(reader.feed("HTTP/1.1 503 Unavailable\r\nContent-Length: 4\r\n\r\n{}\n\n"));
  EXPECT_TRUE(reader.take_lines().empty());
  ASSERT_TRUE(reader.is_done());
  EXPECT_EQ(reader.body(), "{}\n\n");
}

TEST(EtcdHttpTest, ConnectionIsNotUsedTwiceAgainstTheOthersWill) {
  EtcdHttpReader closing(Kind::kReply);
  ASSERT_TRUE(closing.feed("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_FALSE(closing.keeps_alive());
  EtcdHttpReader talking(Kind::kReply);
  ASSERT_TRUE(talking.feed(std::string(kReply) + "HTTP/1.1 200"));
  EXPECT_TRUE(talking.is_done());
  EXPECT_FALSE(talking.keeps_alive());
}

TEST(EtcdHttpTest, EndOfTheConnectionTearsWhatIsNotWhole) {
  for (size_t cut = 0; cut < kReply.size(); ++cut) {
    EtcdHttpReader reader(Kind::kReply);
    ASSERT_TRUE(reader.feed(kReply.substr(0, cut)));
    EXPECT_FALSE(reader.feed_end()) << cut;
  }
  EtcdHttpReader unbounded(Kind::kReply);
  ASSERT_TRUE(unbounded.feed("HTTP/1.0 200 OK\r\n\r\n{}"));
  ASSERT_TRUE(unbounded.feed_end());
  EXPECT_TRUE(unbounded.is_done());
  EXPECT_EQ(unbounded.body(), "{}");
}

TEST(EtcdHttpTest, RefusesWhatIsNoHttp) {
  for (const std::string_view text :
       {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    EtcdHttpReader reader(Kind::kReply);
    EXPECT_FALSE(reader.feed(text)) << text;
  }
}

TEST(EtcdHttpTest, BoundsHeaderBodyAndLine) {
  EtcdHttpReader header(Kind::kReply);
  EXPECT_FALSE(header.feed("HTTP/1.1 200 OK\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"));
  EtcdHttpReader promise(Kind::kReply);
  EXPECT_FALSE(promise.feed("HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"));

  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (const Kind kind : {Kind::kReply, Kind::kStream}) {
    EtcdHttpReader reader(kind);
    ASSERT_TRUE(reader.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    bool refused = false;
    for (int i = 0; i < 200 && !refused; ++i) refused = !reader.feed(chunk);
    EXPECT_TRUE(refused);
    EXPECT_LE(reader.body().size(), kEtcdReplyBytesMax + chunk.size());
  }
}

TEST(EtcdHttpTest, StreamHasNoBoundAsAWhole) {
  EtcdHttpReader reader(Kind::kStream);
  ASSERT_TRUE(reader.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "10000\r\n" + std::string(0xffff, 'x') + "\n\r\n";
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(reader.feed(chunk));
    ASSERT_EQ(reader.take_lines().size(), 1U);
  }
}

// Nothing is reserved for what is only promised.
TEST(EtcdHttpTest, StreamTakesAnyPromisedLength) {
  EtcdHttpReader reader(Kind::kStream);
  EXPECT_TRUE(reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000\r\n\r\nx"));
  EXPECT_EQ(reader.body(), "x");
}

}  // namespace
}  // namespace server::cluster
