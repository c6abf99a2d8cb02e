// SPDX-License-Identifier: MIT
#include "server/net/client_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "server/base/transport/stream.h"

namespace server::net {
namespace {

TEST(ClientInput, WholeCommandsStayWhereTheyWereRead) {
  ClientInput input;
  const std::string fresh = "whole";
  const std::string_view joined = input.join(fresh);
  EXPECT_EQ(joined.data(), fresh.data());
  input.keep(joined.substr(5), true);
  EXPECT_EQ(input.size() + input.free_bytes(), 0u);
}

TEST(ClientInput, TheRestComesBeforeWhatFollows) {
  ClientInput input;
  input.keep(input.join("one,tw").substr(4), true);
  EXPECT_EQ(input.size(), 2u);
  std::string_view joined = input.join("o,three");
  EXPECT_EQ(joined, "two,three");
  input.keep(joined.substr(4), true);
  joined = input.join("");
  EXPECT_EQ(joined, "three");
  // Simulates a command that was held back and not executed: all of its bytes are kept.
  input.keep(joined, true);
  joined = input.join("!");
  EXPECT_EQ(joined, "three!");
}

TEST(ClientInput, ABigCommandsMemoryGoesBack) {
  ClientInput input;
  input.keep(input.join("x"), true);
  const std::string_view joined = input.join(std::string(10 << 20, 'x'));
  EXPECT_EQ(joined.size(), (10u << 20) + 1);
  input.keep(joined.substr(joined.size() - 3), true);
  EXPECT_EQ(input.size(), 3u);
  EXPECT_LE(input.free_bytes(), 4 * ClientInput::kReadBytes);
  input.forget();
  EXPECT_EQ(input.size() + input.free_bytes(), 0u);
}

TEST(ClientInput, FreeRoomIsGivenBackOnRequest) {
  ClientInput input;
  EXPECT_FALSE(input.give_back_free());
  constexpr size_t kAnnounced = 1'000'000;
  input.keep(input.join("*1, begin"), true, {.end = kAnnounced});
  input.keep(input.join("").substr(4), true, {.end = kAnnounced});
  std::ranges::copy(std::string_view("of it"), input.room(true).place.data());
  input.commit(5);
  EXPECT_GE(input.free_bytes(), kAnnounced / 2);
  EXPECT_TRUE(input.give_back_free());
  EXPECT_EQ(input.free_bytes(), 0u);
  EXPECT_FALSE(input.give_back_free());
  EXPECT_EQ(input.join("!"), "beginof it!");
  input.keep("", true);
  EXPECT_TRUE(input.give_back_free());
  EXPECT_EQ(input.size() + input.free_bytes(), 0u);
}

TEST(ClientInput, AnAnnouncedCommandGetsItsRoomOnce) {
  ClientInput input;
  constexpr size_t kAnnounced = 1'000'000;
  input.keep(input.join("begin"), true, {.end = kAnnounced});
  EXPECT_LE(input.size() + input.free_bytes(), 16u) << "the client may send no more";
  std::string sent = "begin";
  const char* first = nullptr;
  while (sent.size() < kAnnounced) {
    const auto [place, size_max] = input.room(true);
    ASSERT_FALSE(place.empty());
    ASSERT_LE(size_max, place.size());
    const size_t size = std::min(size_max, kAnnounced + 3 - sent.size());
    std::ranges::fill(place.first(size), 'x');
    sent.append(size, 'x');
    input.commit(size);
    const std::string_view joined = input.join("");
    ASSERT_EQ(joined, sent);
    if (first == nullptr) first = joined.data();
    ASSERT_EQ(joined.data(), first);
    if (sent.size() < kAnnounced) input.keep(joined, true, {.end = kAnnounced});
    EXPECT_LE(input.size() + input.free_bytes(),
              kAnnounced + ClientInput::kReadBytes + Stream::kExtraBytesMax);
  }
  input.keep(input.join("").substr(kAnnounced), true);
  EXPECT_EQ(input.join(""), "xxx");
  EXPECT_LE(input.free_bytes(), 4 * ClientInput::kReadBytes);
}

TEST(ClientInput, ABigArgumentGetsItsOwnMemory) {
  ClientInput input;
  const std::string head = "*3 SET k $";
  const std::string text(1'000'000, 'v');
  const AnnouncedBytes announced{.end = head.size() + text.size() + 2, .body_offset = head.size()};
  std::string_view sent = text;
  const auto next = [&sent](size_t size) {
    const std::string_view part = sent.substr(0, size);
    sent.remove_prefix(part.size());
    return part;
  };
  input.keep(input.join(head + std::string(next(10'000))), true, announced);
  const size_t before = input.size() + input.free_bytes();
  EXPECT_LE(before, 2 * 10'000U) << "the rest may never come";
  while (sent.size() > 1000) {
    const auto [place, size_max] = input.room(true);
    EXPECT_EQ(input.awaited_bytes(), 0u) << "its memory is taken";
    EXPECT_EQ(input.big_argument(), nullptr);
    EXPECT_EQ(place.size(), sent.size());
    EXPECT_LE(size_max, place.size() + Stream::kExtraBytesMax) << "what follows must be moved";
    const std::string_view part = next(std::min<size_t>(300'000, sent.size() - 1000));
    std::ranges::copy(part, place.begin());
    input.commit(part.size());
    input.keep(input.join(""), true, announced);
    EXPECT_EQ(input.size(), head.size() + text.size() - sent.size());
    EXPECT_LE(input.size() + input.free_bytes(), before + text.size());
  }
  std::ranges::copy(sent, input.room(true).place.begin());
  input.commit(sent.size());
  std::string_view joined = input.join("\r\nPING");
  EXPECT_EQ(joined, head + "\r\nPING");
  ASSERT_NE(input.big_argument(), nullptr);
  EXPECT_TRUE(input.big_argument()->text() == text);
  EXPECT_EQ(input.big_argument()->offset(), head.size());
  // All bytes are kept, as for a command that was held back and not executed.
  input.keep(joined, true);
  ASSERT_NE(input.big_argument(), nullptr);
  EXPECT_EQ(input.size(), joined.size() + text.size());
  joined = input.join("");
  input.keep(joined.substr(joined.size() - 4), true);
  EXPECT_EQ(input.big_argument(), nullptr);
  EXPECT_EQ(input.join(""), "PING");
  EXPECT_EQ(input.size(), 4u);
}

TEST(ClientInput, BigArgumentTakesTheSameForEachFirstRead) {
  const std::string head = "*3 SET k $";
  const std::string text(1'000'000, 'v');
  const AnnouncedBytes announced{.end = head.size() + text.size() + 2, .body_offset = head.size()};
  for (const size_t first : {1'000, 16'500, 65'000}) {
    ClientInput input;
    input.keep(input.join(head + text.substr(0, first)), true, announced);
    const std::span<char> place = input.room(true).place;
    EXPECT_EQ(place.size(), text.size() - first);
    EXPECT_NEAR(input.size() + input.free_bytes(), text.size(), 100) << first;
    std::ranges::copy(std::string_view(text).substr(first), place.begin());
    input.commit(place.size());
    EXPECT_EQ(input.join("\r\n"), head + "\r\n");
    EXPECT_TRUE(input.big_argument()->text() == text) << first;
  }
}

TEST(ClientInput, AnIdleClientGivesABigArgumentBack) {
  ClientInput input;
  const std::string head = "*3 SET k $";
  const std::string text(1'000'000, 'v');
  const AnnouncedBytes announced{.end = head.size() + text.size() + 2, .body_offset = head.size()};
  const auto send = [&](std::string_view part) {
    const std::span<char> place = input.room(true).place;
    ASSERT_GE(place.size(), part.size());
    std::ranges::copy(part, place.begin());
    input.commit(part.size());
    input.keep(input.join(""), true, announced);
  };
  input.keep(input.join(head + text.substr(0, 50'000)), true, announced);
  send(std::string_view(text).substr(50'000, 100'000));
  EXPECT_GE(input.free_bytes(), text.size() - 150'000);
  EXPECT_TRUE(input.give_back_free());
  EXPECT_EQ(input.free_bytes(), 0u);
  EXPECT_TRUE(input.join("") == head + text.substr(0, 150'000));
  send(std::string_view(text).substr(150'000, 100'000));
  EXPECT_EQ(input.size(), head.size() + 250'000);
  while (input.size() < head.size() + text.size() - 1000) {
    const size_t sent = input.size() - head.size();
    send(std::string_view(text).substr(sent, std::min<size_t>(100'000, text.size() - 1000 - sent)));
  }
  EXPECT_EQ(input.join(text.substr(text.size() - 1000) + "\r\n"), head + "\r\n");
  ASSERT_NE(input.big_argument(), nullptr);
  EXPECT_TRUE(input.big_argument()->text() == text);
}

TEST(ClientInput, OtherArgumentsGetNoOwnMemory) {
  for (const size_t size : {BigArgument::kBytesMin - 1, BigArgument::kAtOnceBytesMax + 1}) {
    ClientInput input;
    input.keep(input.join("*2 $"), true, {.end = 4 + size + 2, .body_offset = 4});
    ASSERT_FALSE(input.room(true).place.empty());
    EXPECT_GT(input.awaited_bytes(), 0u) << size;
  }
}

// Only a client that has sent kAtOnceBytesMax gets memory for all that it has announced.
TEST(ClientInput, AHugeArgumentGetsItsMemoryLate) {
  constexpr size_t kAtOnce = BigArgument::kAtOnceBytesMax;
  ClientInput input;
  const std::string head = "*3 SET k $";
  const std::string text = std::string(kAtOnce, 'a') + std::string(kAtOnce / 2, 'b');
  const AnnouncedBytes announced{.end = head.size() + text.size() + 2, .body_offset = head.size()};
  input.keep(input.join(head + text.substr(0, 100'000)), true, announced);
  size_t sent = 100'000;
  while (sent < text.size()) {
    const bool is_huge = sent >= kAtOnce;
    if (!is_huge) {
      EXPECT_LE(input.awaited_bytes(), kAtOnce);
    }
    const auto [place, size_max] = input.room(true);
    const size_t size = std::min({place.size(), size_max, text.size() - sent});
    ASSERT_GT(size, 0u);
    std::ranges::copy(std::string_view(text).substr(sent, size), place.begin());
    input.commit(size);
    sent += size;
    if (is_huge && sent < text.size()) {
      EXPECT_EQ(input.awaited_bytes(), 0u) << "its memory is there";
      EXPECT_FALSE(input.give_back_free());
    }
    input.keep(input.join(""), true, announced);
  }
  EXPECT_EQ(input.join("\r\n"), head + "\r\n");
  ASSERT_NE(input.big_argument(), nullptr);
  EXPECT_TRUE(input.big_argument()->text() == text);
}

// A client that stops in the middle of a huge argument does not keep memory for the rest of it.
TEST(ClientInput, AnIdleClientGivesAHugeArgumentBack) {
  constexpr size_t kAtOnce = BigArgument::kAtOnceBytesMax;
  ClientInput input;
  const std::string head = "*3 SET k $";
  const AnnouncedBytes announced{.end = head.size() + 10 * kAtOnce, .body_offset = head.size()};
  input.keep(input.join(head + std::string(kAtOnce, 'a')), true, announced);
  EXPECT_GE(input.room(true).place.size(), 9 * kAtOnce - 2);
  EXPECT_TRUE(input.give_back_free());
  EXPECT_LT(input.free_bytes(), 4096u) << "at most the rest of a page";
  EXPECT_TRUE(input.join("") == head + std::string(kAtOnce, 'a'));
}

TEST(ClientInput, SmallPartsComeThroughTheThreadsBuffer) {
  ClientInput input;
  EXPECT_TRUE(input.room(true).place.empty());
  input.keep(input.join("begin"), true, {.end = 1000});
  EXPECT_TRUE(input.room(true).place.empty());
}

TEST(ClientInput, ManyBigPartsMoveEachByteAFewTimes) {
  ClientInput input;
  constexpr size_t kPart = 50'000;
  const std::string part(kPart, 'x');
  size_t moves = 0;
  const char* place = nullptr;
  for (size_t size = 0; size < 400 * kPart; size += kPart) {
    const std::string_view joined = input.join(part);
    if (joined.data() != place) ++moves;
    input.keep(joined, true, {.end = joined.size() + kPart});
    place = input.join("").data();
    EXPECT_GE(input.room(true).place.size(), kPart);
  }
  EXPECT_LT(moves, 100u);
  EXPECT_EQ(input.size(), 400 * kPart);
}

TEST(ClientInput, BeforeALoginItIsBounded) {
  ClientInput input;
  EXPECT_EQ(input.room(true).size_max, ClientInput::kReadBytes);
  EXPECT_EQ(input.room(false).size_max, ClientInput::kUnknownBytesMax);
  const std::string part(15'000, 'x');
  input.keep(input.join(part), false);
  EXPECT_EQ(input.room(false).size_max, ClientInput::kUnknownBytesMax - part.size());
  input.keep(input.join(std::string(input.room(false).size_max, 'x')), false);
  EXPECT_EQ(input.size(), ClientInput::kUnknownBytesMax);
  EXPECT_EQ(input.free_bytes(), 0u);
  EXPECT_EQ(input.room(false).size_max, 0u);
}

}  // namespace
}  // namespace server::net
