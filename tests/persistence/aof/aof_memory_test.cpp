// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "core/memory/thread_heap.h"
#include "persistence/aof/aof_writer.h"
#include "tests/support/manual_clock.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

constexpr size_t kValueBytes = size_t{5} << 20;
constexpr size_t kBlockBytes = 50'000;

void set(Journal& journal, size_t value_bytes = kValueBytes) {
  const std::string value(value_bytes, 'v');
  journal.append(0, std::array<std::string_view, 3>{"SET", "key", value});
}

class AofMemoryTest : public testing::Test {
 protected:
  AofMemoryTest() {
    journal_.set_active(true);
    EXPECT_TRUE(writer_.open({}, std::nullopt, 0, AofWriter::Begin::kNow));
  }

  virtual_disk::VirtualDisk disk_;
  server::ManualClock clock_;
  Journal journal_;
  AofWriter writer_{disk_, journal_, clock_, AofPlace{"./log", AofNames("a.aof")}};
};

TEST_F(AofMemoryTest, IncludesAllWaitingCommands) {
  set(journal_);
  EXPECT_GE(writer_.memory_bytes(), kValueBytes) << "the journal has the command";
  EXPECT_LT(writer_.memory_bytes(), 2 * kValueBytes);
  disk_.restart_count();
  disk_.fail_operation(1);
  EXPECT_FALSE(writer_.write());
  EXPECT_GE(writer_.memory_bytes(), kValueBytes) << "the batch has the command";
  set(journal_);
  EXPECT_GE(writer_.memory_bytes(), 2 * kValueBytes) << "the journal and the batch have one each";
  ASSERT_TRUE(writer_.write());
  EXPECT_LT(writer_.memory_bytes(), kValueBytes) << "big buffers are freed after use";
}

TEST_F(AofMemoryTest, MatchesTheHeap) {
  const auto heap_before = core::thread_heap_bytes();
  if (!heap_before) GTEST_SKIP() << "this allocator is not jemalloc";
  for (int i = 0; i < 70; ++i) {
    set(journal_, kBlockBytes);
    const auto heap_growth = static_cast<int64_t>(*core::thread_heap_bytes() - *heap_before);
    // The heap also holds the buffer in which the thread encodes its commands.
    ASSERT_NEAR(static_cast<int64_t>(writer_.memory_bytes()), heap_growth, 2 * kBlockBytes)
        << "after command " << i;
  }
  const uint64_t waiting_bytes = writer_.memory_bytes();
  disk_.restart_count();
  disk_.fail_operation(1);
  ASSERT_FALSE(writer_.write());
  EXPECT_EQ(writer_.memory_bytes(), waiting_bytes) << "the batch has the journal's buffer";
}

class Sink final : public StreamSink {
 public:
  explicit Sink(const Journal& journal) : journal_(journal) {}
  void append(std::string_view /*bytes*/) override { seen_bytes = journal_.memory_bytes(); }

  uint64_t seen_bytes = 0;

 private:
  const Journal& journal_;
};

TEST(JournalMemoryTest, IncludesBothBuffersDuringAGrowth) {
  Journal journal;
  journal.set_active(true);
  Sink sink(journal);
  journal.set_second_sink(&sink);
  int growths = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = journal.memory_bytes();
    if (i % 2 == 0) {
      set(journal, kBlockBytes);
    } else {
      const Journal::Group group(journal);
      set(journal, kBlockBytes);
      set(journal, kBlockBytes);
    }
    if (journal.memory_bytes() == before) {
      ASSERT_EQ(sink.seen_bytes, before) << "after command " << i;
      continue;
    }
    ++growths;
    ASSERT_GE(sink.seen_bytes, before + journal.memory_bytes()) << "after command " << i;
  }
  EXPECT_GT(growths, 5);
  journal.set_second_sink(nullptr);
}

TEST(JournalMemoryTest, WithoutALogItKeepsNoBigBuffer) {
  Journal journal;
  Sink replicas(journal);
  journal.set_second_sink(&replicas);
  set(journal);
  EXPECT_LT(journal.memory_bytes(), kValueBytes / 10);
  journal.set_second_sink(nullptr);
}

}  // namespace
}  // namespace persistence
