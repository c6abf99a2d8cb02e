// SPDX-License-Identifier: MIT
#include "server/base/transport/tls_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/transport/tls_context.h"
#include "tests/support/socket_pair.h"
#include "tests/support/tls_identity.h"

namespace server {
namespace {

constexpr size_t kReadBytes = 65536;

class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest() { connect({}); }

  void connect(const std::string& protocols) {
    TlsSettings settings;
    settings.server = {identity_.certificate_file(), identity_.key_file(), ""};
    settings.ca_file = identity_.certificate_file();
    settings.auth_clients = TlsAuthClients::kNo;
    settings.protocols = protocols;
    const auto context = TlsContext::make(settings);
    ASSERT_TRUE(context) << context.error().message;
    sockets_ = std::make_unique<SocketPair>();
    server_ = std::make_unique<TlsStream>(context->server, TlsStream::Side::kServer,
                                          ::dup(sockets_->near));
    client_ = std::make_unique<TlsStream>(context->client, TlsStream::Side::kClient,
                                          ::dup(sockets_->far));
  }

  // Receives once. Returns the bytes, and stores the status of the call in `status_`.
  std::string receive(TlsStream& stream, size_t size_max = kReadBytes) {
    std::string room(size_max + Stream::kExtraBytesMax, '\0');
    const auto outcome = stream.receive({}, room, size_max);
    status_ = outcome.status;
    return room.substr(0, outcome.bytes);
  }
  std::string receive_all(TlsStream& stream, size_t size_max = kReadBytes) {
    std::string all;
    do {
      all += receive(stream, size_max);
    } while (status_ == Stream::Status::kDone);
    return all;
  }
  void shake_hands() {
    EXPECT_EQ(client_->send("").bytes, 0u);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(receive(*server_), "");
      EXPECT_EQ(receive(*client_), "");
    }
    ASSERT_EQ(server_->phase(), TlsStream::Phase::kEstablished);
    ASSERT_EQ(client_->phase(), TlsStream::Phase::kEstablished);
  }
  bool is_readable(int descriptor) const {
    pollfd entry{descriptor, POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }

  TlsIdentity identity_;
  std::unique_ptr<SocketPair> sockets_;
  std::unique_ptr<TlsStream> server_;
  std::unique_ptr<TlsStream> client_;
  Stream::Status status_ = Stream::Status::kDone;
};

TEST_F(TlsStreamTest, BytesGoBothWaysInEachVersion) {
  for (const char* protocols : {"TLSv1.2", "TLSv1.3"}) {
    connect(protocols);
    shake_hands();
    EXPECT_EQ(client_->send("request").bytes, 7u);
    EXPECT_EQ(receive(*server_), "request");
    EXPECT_EQ(server_->send("reply").bytes, 5u);
    EXPECT_EQ(receive(*client_), "reply");
    EXPECT_EQ(receive(*server_), "");
    EXPECT_EQ(status_, Stream::Status::kLater);
  }
}

TEST_F(TlsStreamTest, NothingIsSentBeforeTheHandshake) {
  const auto outcome = server_->send("early");
  EXPECT_EQ(outcome.status, Stream::Status::kLater);
  EXPECT_EQ(outcome.bytes, 0u);
  EXPECT_FALSE(is_readable(sockets_->far));
}

// receive() must return all complete TLS records that it has read from the socket. Otherwise a
// caller that waits for the socket would miss the remaining records.
TEST_F(TlsStreamTest, NoWholeRecordStaysInside) {
  shake_hands();
  for (const size_t size_max : {size_t{1}, size_t{7}, size_t{1000}, size_t{20'000}, kReadBytes}) {
    std::string sent;
    for (const size_t size : {1, 16'384, 3, 16'383, 20'000, 100}) {
      const std::string piece(size, static_cast<char>('a' + size % 26));
      ASSERT_EQ(client_->send(piece).bytes, size);
      sent += piece;
    }
    std::string got;
    while (is_readable(sockets_->near)) got += receive(*server_, size_max);
    EXPECT_EQ(got.size(), sent.size()) << size_max;
    EXPECT_EQ(got, sent) << size_max;
  }
}

TEST_F(TlsStreamTest, SecondRoomGetsTheRest) {
  shake_hands();
  const std::string sent = std::string(20'000, 'a') + std::string(20'000, 'b');
  ASSERT_EQ(client_->send(sent).bytes, sent.size());
  std::string first(25'000, '\0');
  std::string second(kReadBytes, '\0');
  const auto outcome = server_->receive(first, second, kReadBytes);
  EXPECT_EQ(outcome.bytes, sent.size());
  EXPECT_EQ(first + second.substr(0, 15'000), sent);
}

TEST_F(TlsStreamTest, TheHandshakeMayComeByteByByte) {
  EXPECT_EQ(client_->send("").bytes, 0u);
  for (int i = 0; i < 4; ++i) {
    while (is_readable(sockets_->near)) EXPECT_EQ(receive(*server_, 1), "");
    while (is_readable(sockets_->far)) EXPECT_EQ(receive(*client_, 1), "");
  }
  EXPECT_EQ(server_->phase(), TlsStream::Phase::kEstablished);
}

TEST_F(TlsStreamTest, UnsentBytesAreHeldAndSentLater) {
  shake_hands();
  const std::string much(size_t{4} << 20, 'x');
  size_t taken = 0;
  Stream::Outcome outcome{};
  do {
    outcome = server_->send(std::string_view(much).substr(taken));
    taken += outcome.bytes;
  } while (!outcome.holds_bytes && taken < much.size());
  ASSERT_TRUE(outcome.holds_bytes);
  EXPECT_EQ(server_->send("no room").bytes, 0u);
  std::string got;
  while (outcome.holds_bytes) {
    got += receive(*client_);
    // send() with an empty text only sends the bytes that the stream still holds from earlier
    // calls.
    outcome = server_->send("");
    EXPECT_EQ(outcome.bytes, 0u);
  }
  got += receive_all(*client_);
  EXPECT_EQ(got.size(), taken);
  EXPECT_EQ(server_->send("end").bytes, 3u);
  EXPECT_EQ(receive_all(*client_), "end");
}

TEST_F(TlsStreamTest, ReportsTheEndWhileTheSocketStaysOpen) {
  shake_hands();
  const int kept = ::dup(sockets_->far);
  EXPECT_EQ(client_->send("last").bytes, 4u);
  client_->close();
  EXPECT_EQ(receive(*server_), "last");
  EXPECT_TRUE(is_readable(sockets_->near));
  EXPECT_EQ(receive(*server_), "");
  EXPECT_EQ(status_, Stream::Status::kEnd);
  EXPECT_EQ(server_->send("still").bytes, 5u) << "its own half is open";
  ::close(kept);
}

TEST_F(TlsStreamTest, ADamagedRecordBreaksItAfterWhatCameBefore) {
  shake_hands();
  EXPECT_EQ(client_->send("whole").bytes, 5u);
  ASSERT_EQ(::write(sockets_->far, "\x17\x03\x03\x00\x20garbagegarbagegarbagegarbagegarb", 37), 37);
  EXPECT_EQ(receive(*server_), "whole");
  EXPECT_TRUE(is_readable(sockets_->near)) << "or the server would not notice";
  EXPECT_EQ(receive(*server_), "");
  EXPECT_EQ(status_, Stream::Status::kBroken);
  EXPECT_NE(server_->failure(), "");
  EXPECT_EQ(server_->send("no").status, Stream::Status::kBroken);
}

TEST_F(TlsStreamTest, PlainTextIsNoHandshake) {
  ASSERT_EQ(::write(sockets_->far, "PING\r\n", 6), 6);
  EXPECT_EQ(receive(*server_), "");
  EXPECT_EQ(status_, Stream::Status::kBroken);
  EXPECT_NE(server_->failure().find("SSL routines"), std::string::npos) << server_->failure();
  EXPECT_EQ(server_->phase(), TlsStream::Phase::kHandshake);
}

TEST_F(TlsStreamTest, ClosedNothingGoes) {
  shake_hands();
  server_->close();
  EXPECT_EQ(server_->phase(), TlsStream::Phase::kClosed);
  EXPECT_EQ(server_->send("x").status, Stream::Status::kBroken);
  EXPECT_EQ(receive(*server_), "");
  EXPECT_EQ(status_, Stream::Status::kBroken);
  EXPECT_EQ(receive(*client_), "");
  EXPECT_EQ(receive(*client_), "");
  EXPECT_EQ(status_, Stream::Status::kEnd);
}

}  // namespace
}  // namespace server
