// SPDX-License-Identifier: MIT
#include "server/replication/replica/snapshot_receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace server {
namespace {

const std::string kEndMark = "MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK";

struct Received {
  std::string snapshot;
  std::string rest;
  bool is_complete = false;
};

// Feeds `bytes` to the receiver in pieces of `size` bytes.
Received receive(SnapshotReceiver& transfer, std::string_view bytes, size_t size) {
  Received received;
  std::string input;
  while (!bytes.empty() && !received.is_complete) {
    input += bytes.substr(0, size);
    bytes.remove_prefix(std::min(size, bytes.size()));
    for (;;) {
      const auto piece = transfer.next(input);
      received.snapshot += input.substr(0, piece.snapshot_bytes);
      input.erase(0, piece.snapshot_bytes + piece.mark_bytes);
      received.is_complete = piece.is_end;
      if (piece.is_end || piece.snapshot_bytes == 0) break;
    }
  }
  received.rest = input + std::string(bytes);
  return received;
}

TEST(SnapshotReceiverTest, EndsAfterTheAnnouncedSize) {
  for (size_t size = 1; size < 20; ++size) {
    SnapshotReceiver transfer;
    ASSERT_TRUE(transfer.announce("$10"));
    EXPECT_EQ(transfer.size(), 10);
    const Received received = receive(transfer, "0123456789*1\r\n", size);
    EXPECT_TRUE(received.is_complete);
    EXPECT_EQ(received.snapshot, "0123456789");
    EXPECT_EQ(received.rest, "*1\r\n");
    EXPECT_EQ(transfer.received(), 10u);
  }
}

TEST(SnapshotReceiverTest, EndsAtTheMarkHoweverItIsCut) {
  // The snapshot contains bytes that look like the start of the end mark.
  const std::string snapshot = "RDB" + kEndMark.substr(0, 39) + "M" + kEndMark.substr(1, 12);
  for (size_t size = 1; size < 150; ++size) {
    SnapshotReceiver transfer;
    ASSERT_TRUE(transfer.announce("$EOF:" + kEndMark));
    EXPECT_EQ(transfer.size(), -1);
    const Received received = receive(transfer, snapshot + kEndMark + "*1", size);
    ASSERT_TRUE(received.is_complete) << size;
    EXPECT_EQ(received.snapshot, snapshot) << size;
    EXPECT_EQ(received.rest, "*1");
  }
}

TEST(SnapshotReceiverTest, IsNotCompleteBeforeItsEnd) {
  SnapshotReceiver sized;
  ASSERT_TRUE(sized.announce("$5"));
  EXPECT_FALSE(receive(sized, "0123", 2).is_complete);
  SnapshotReceiver marked;
  ASSERT_TRUE(marked.announce("$EOF:" + kEndMark));
  EXPECT_FALSE(receive(marked, "0123" + kEndMark.substr(0, 39), 7).is_complete);
}

TEST(SnapshotReceiverTest, AnEmptySnapshotEndsAtOnce) {
  SnapshotReceiver transfer;
  ASSERT_TRUE(transfer.announce("$0"));
  EXPECT_TRUE(transfer.next("").is_end);
}

TEST(SnapshotReceiverTest, RefusesWhatAnnouncesNothing) {
  for (const char* line : {"", "$", "$-1", "$12x", "$+5", "5", "+OK", "$EOF:", "$EOF:SHORT",
                           "$9223372036854775807", "$99999999999999999999"}) {
    SnapshotReceiver transfer;
    EXPECT_FALSE(transfer.announce(line)) << line;
  }
}

}  // namespace
}  // namespace server
