// SPDX-License-Identifier: MIT
#include "server/replication/leader/replica_sender.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/socket_pair.h"

namespace server {
namespace {

using Progress = ReplicaSender::Progress;

class ReplicaSenderTest : public ::testing::Test {
 protected:
  ReplicaSenderTest() {
    client_->socket.descriptor = sockets_.near;
    sender_ = std::make_unique<ReplicaSender>(client_);
    backlog_.begin(100);
    sender_->offset = 100;
  }

  Progress pump(bool flows = true) { return sender_->pump(backlog_, flows, buffer_, sent_); }
  std::string received() const {
    std::string all;
    std::array<char, 65536> part{};
    for (ssize_t size = 0; (size = ::recv(sockets_.far, part.data(), part.size(), 0)) > 0;) {
      all.append(part.data(), static_cast<size_t>(size));
    }
    return all;
  }
  // Returns a file with these bytes and no name.
  static core::Descriptor file_of(std::string_view bytes) {
    std::FILE* const file = std::tmpfile();
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    std::fflush(file);
    core::Descriptor descriptor(::fcntl(::fileno(file), F_DUPFD_CLOEXEC, 0));
    std::fclose(file);
    return descriptor;
  }

  SocketPair sockets_;
  std::shared_ptr<Client> client_ = std::make_shared<Client>(7);
  std::unique_ptr<ReplicaSender> sender_;
  Backlog backlog_;
  std::vector<char> buffer_ = std::vector<char>(4096);
  uint64_t sent_ = 0;
};

TEST_F(ReplicaSenderTest, TextsGoBeforeTheStream) {
  backlog_.append("stream");
  sender_->say("+CONTINUE\r\n");
  EXPECT_FALSE(sender_->has_said_all());
  EXPECT_EQ(pump(), Progress::kIdle);
  EXPECT_TRUE(sender_->has_said_all());
  EXPECT_EQ(received(), "+CONTINUE\r\nstream");
  EXPECT_EQ(sent_, 17U);
}

TEST_F(ReplicaSenderTest, TheStreamWaitsUntilItMayFlow) {
  backlog_.append("stream");
  EXPECT_EQ(pump(false), Progress::kIdle);
  EXPECT_EQ(received(), "");
  EXPECT_EQ(sender_->offset, 100U);
  EXPECT_EQ(pump(true), Progress::kIdle);
  EXPECT_EQ(received(), "stream");
  EXPECT_EQ(sender_->offset, 106U);
}

TEST_F(ReplicaSenderTest, GoesOnBehindWhatWasSent) {
  backlog_.append("one");
  pump();
  backlog_.append("two");
  pump();
  EXPECT_EQ(received(), "onetwo");
  EXPECT_EQ(sent_, 6U);
}

TEST_F(ReplicaSenderTest, AFileStandsBetweenTextsAndStream) {
  backlog_.append("stream");
  sender_->say("$5\r\n");
  sender_->send_file(file_of("bytes"), 5);
  EXPECT_EQ(pump(), Progress::kFileSent);
  EXPECT_EQ(received(), "$5\r\nbytes");
  EXPECT_EQ(pump(), Progress::kIdle);
  EXPECT_EQ(received(), "stream");
}

TEST_F(ReplicaSenderTest, AFileThatWasCutEndsTheLink) {
  sender_->send_file(file_of("byt"), 5);
  EXPECT_EQ(pump(), Progress::kGone);
}

TEST_F(ReplicaSenderTest, BytesThatTheBacklogHasNotEndTheLink) {
  backlog_.begin(500);
  EXPECT_EQ(pump(), Progress::kGone);
}

TEST_F(ReplicaSenderTest, AFullSocketIsWaitedForAndLosesNothing) {
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(10'000, static_cast<char>('a' + i % 26));
    backlog_.append(piece);
    all += piece;
  }
  EXPECT_EQ(pump(), Progress::kBlocked);
  std::string got;
  for (int i = 0; i < 1000 && got.size() < all.size(); ++i) {
    got += received();
    (void)pump();
  }
  EXPECT_EQ(got + received(), all);
}

TEST_F(ReplicaSenderTest, ABigFileGivesTheOthersTheirTurn) {
  constexpr size_t kSize = size_t{3} << 20;
  sender_->send_file(file_of(std::string(kSize, 'x')), kSize);
  size_t received_bytes = 0;
  Progress progress = Progress::kMore;
  for (int i = 0; i < 10'000 && progress != Progress::kFileSent; ++i) {
    const uint64_t before = sent_;
    progress = pump();
    ASSERT_NE(progress, Progress::kGone);
    EXPECT_LE(sent_ - before, uint64_t{1} << 20);
    received_bytes += received().size();
  }
  EXPECT_EQ(progress, Progress::kFileSent);
  EXPECT_EQ(received_bytes + received().size(), kSize);
}

TEST_F(ReplicaSenderTest, APeerThatHasLeftEndsTheLink) {
  ::shutdown(sockets_.far, SHUT_RDWR);
  backlog_.append("stream");
  EXPECT_EQ(pump(), Progress::kGone);
}

TEST_F(ReplicaSenderTest, HasADescriptorOfItsOwn) {
  EXPECT_TRUE(sender_->socket.is_open());
  EXPECT_NE(sender_->socket.get(), sockets_.near);
  ::close(std::exchange(sockets_.near, -1));
  backlog_.append("stream");
  EXPECT_EQ(pump(), Progress::kIdle);
  EXPECT_EQ(received(), "stream");
}

TEST_F(ReplicaSenderTest, WithoutASocketThereIsNone) {
  auto client = std::make_shared<Client>(8);
  client->socket.descriptor = -1;
  EXPECT_FALSE(ReplicaSender(client).socket.is_open());
}

TEST_F(ReplicaSenderTest, ShutDownEndsBothDirections) {
  sender_->shut_down();
  char byte = 0;
  EXPECT_EQ(::recv(sockets_.far, &byte, 1, 0), 0);
  EXPECT_LT(::send(sockets_.far, "x", 1, MSG_NOSIGNAL), 0);
}

}  // namespace
}  // namespace server
