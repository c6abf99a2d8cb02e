// SPDX-License-Identifier: MIT
#include "server/base/transport/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "tests/support/socket_pair.h"

namespace server {
namespace {

TEST(SocketStream, SendsReceivesAndEnds) {
  SocketPair pair;
  SocketStream stream(::dup(pair.near));
  std::array<char, 8> room{};
  const auto receive = [&] { return stream.receive({}, room, room.size()); };
  EXPECT_EQ(receive().status, Stream::Status::kLater);
  pair.make_ready();
  const auto received = receive();
  EXPECT_EQ(received.status, Stream::Status::kDone);
  EXPECT_EQ(std::string_view(room.data(), received.bytes), "x");
  EXPECT_EQ(stream.send("yes").bytes, 3u);
  ASSERT_EQ(::read(pair.far, room.data(), room.size()), 3);
  ASSERT_EQ(::shutdown(pair.far, SHUT_WR), 0);
  EXPECT_EQ(receive().status, Stream::Status::kEnd);
  stream.close();
  EXPECT_EQ(stream.send("no").status, Stream::Status::kBroken);
  EXPECT_EQ(receive().status, Stream::Status::kBroken);
}

TEST(SocketStream, SecondRoomGetsTheRest) {
  SocketPair pair;
  SocketStream stream(::dup(pair.near));
  std::array<char, 4> first{};
  std::array<char, 8> second{};
  ASSERT_EQ(::write(pair.far, "abcdefghijk", 11), 11);
  EXPECT_EQ(stream.receive(first, second, 3).bytes, 3u);
  EXPECT_EQ(std::string_view(first.data(), 3), "abc");
  EXPECT_EQ(stream.receive(first, second, 6).bytes, 6u);
  EXPECT_EQ(std::string_view(first.data(), 4), "defg");
  EXPECT_EQ(std::string_view(second.data(), 2), "hi");
  EXPECT_EQ(stream.receive(first, second, 6).bytes, 2u);
  EXPECT_EQ(std::string_view(first.data(), 2), "jk");
}

TEST(SocketStream, SendsOnlyAsMuchAsTheSocketAccepts) {
  SocketPair pair;
  SocketStream stream(::dup(pair.near));
  const std::string much(size_t{16} << 20, 'x');
  const auto first = stream.send(much);
  EXPECT_EQ(first.status, Stream::Status::kDone);
  EXPECT_LT(first.bytes, much.size());
  EXPECT_EQ(stream.send(much).status, Stream::Status::kLater);
}

}  // namespace
}  // namespace server
