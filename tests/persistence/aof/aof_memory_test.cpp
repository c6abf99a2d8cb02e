// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "persistence/aof/aof_writer.h"
#include "tests/support/manual_clock.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

constexpr size_t kValueBytes = size_t{5} << 20;

void set(Journal& journal) {
  const std::string value(kValueBytes, 'v');
  journal.append(0, std::array<std::string_view, 3>{"SET", "key", value});
}

TEST(AofMemory, IncludesAllWaitingCommands) {
  virtual_disk::VirtualDisk disk;
  server::ManualClock clock;
  Journal journal;
  journal.set_active(true);
  AofWriter writer(disk, journal, clock, AofPlace{"./log", AofNames("a.aof")});
  ASSERT_TRUE(writer.open({}, std::nullopt, 0, AofWriter::Begin::kNow));
  set(journal);
  EXPECT_GE(writer.memory_bytes(), kValueBytes) << "the journal has the command";
  EXPECT_LT(writer.memory_bytes(), 2 * kValueBytes);
  disk.restart_count();
  disk.fail_operation(1);
  EXPECT_FALSE(writer.write());
  EXPECT_GE(writer.memory_bytes(), kValueBytes) << "the batch has the command";
  set(journal);
  EXPECT_GE(writer.memory_bytes(), 2 * kValueBytes) << "the journal and the batch have one each";
  ASSERT_TRUE(writer.write());
  EXPECT_LT(writer.memory_bytes(), kValueBytes) << "big buffers are freed after use";
}

class Sink final : public StreamSink {
 public:
  void append(std::string_view /*bytes*/) override {}
};

TEST(AofMemory, JournalWithoutALogKeepsNoBigBuffer) {
  Journal journal;
  Sink replicas;
  journal.set_second_sink(&replicas);
  set(journal);
  EXPECT_LT(journal.memory_bytes(), kValueBytes / 10);
  journal.set_second_sink(nullptr);
}

}  // namespace
}  // namespace persistence
