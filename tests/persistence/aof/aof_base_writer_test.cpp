// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_base_writer.h"

#include <gtest/gtest.h>

#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_reader.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "tests/support/filters.h"
#include "tests/support/snapshots.h"
#include "tests/support/upsert.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using core::keyspace::Keyspace;
using filters::parameters_of;

constexpr unsigned kDatabases = 3;
constexpr uint64_t kHashSeed = 7;
const std::string kPath = "base.aof";

void put_string(Keyspace& keyspace, unsigned database, std::string_view name, std::string value,
                int64_t expires_at_ms = 0) {
  const auto key = keyspace.ref(name);
  auto& entry = core::keyspace::upsert(keyspace, database, key, core::keyspace::kIgnoreExpiry);
  ASSERT_TRUE(entry.set_string(std::move(value)));
  if (expires_at_ms != 0) keyspace.set_expiry(database, key, entry, expires_at_ms);
}

void put_filter(Keyspace& keyspace, unsigned database, std::string_view name,
                const core::bloom::FilterParameters& parameters, int items) {
  const auto key = keyspace.ref(name);
  core::keyspace::upsert(keyspace, database, key, core::keyspace::kIgnoreExpiry)
      .set_filter(filters::make(parameters, "item", items));
}

// A separate implementation of replay for the six commands that a base may contain.
class Replayer {
 public:
  explicit Replayer(Keyspace& keyspace) : keyspace_(keyspace) {}

  core::Result<> execute(const AofCommand& command) {
    const auto& words = command.arguments;
    if (words[0] == "SELECT") {
      database_ = static_cast<unsigned>(std::stoul(std::string(words[1])));
      return {};
    }
    const auto key = keyspace_.ref(words[1]);
    auto& entry = core::keyspace::upsert(keyspace_, database_, key, core::keyspace::kIgnoreExpiry);
    if (words[0] == "SET") {
      EXPECT_TRUE(entry.set_string(std::string(words[2])));
      if (words.size() == 5) expire(key, entry, words[4]);
    } else if (words[0] == "APPEND") {
      core::keyspace::IntegerText scratch;
      EXPECT_TRUE(entry.set_string(std::string(entry.text(scratch)) + std::string(words[2])));
    } else if (words[0] == "PEXPIREAT") {
      expire(key, entry, words[2]);
    } else if (words[0] == "BF.LOAD") {
      auto filter = decode_load_payload(words[2], core::UnlimitedMemory());
      EXPECT_TRUE(filter) << filter.error().message;
      if (filter) entry.set_filter(std::move(*filter));
      ++loads;
      return {};
    } else {
      EXPECT_EQ(words[0], "BF.LOADCHUNK");
      load_chunk_of(entry, std::stoull(std::string(words[2])), words[3]);
    }
    longest_word = std::max(longest_word, words.back().size());
    return {};
  }

  // Size of the longest last argument of a command. Ignores BF.LOAD, whose payload is not split.
  size_t longest_word = 0;
  int loads = 0;

 private:
  void expire(const core::keyspace::KeyRef& key, core::keyspace::Entry& entry,
              std::string_view time_ms) {
    keyspace_.set_expiry(database_, key, entry, std::stoll(std::string(time_ms)));
  }
  static void load_chunk_of(core::keyspace::Entry& entry, uint64_t iterator,
                            std::string_view bytes) {
    if (iterator == 1) {
      auto filter = decode_chunk_header(bytes, core::UnlimitedMemory());
      ASSERT_TRUE(filter) << filter.error().message;
      return entry.set_filter(std::move(*filter));
    }
    EXPECT_EQ(load_chunk(entry.filter(), iterator - bytes.size() - 1, bytes),
              ChunkOutcome::kLoaded);
  }

  Keyspace& keyspace_;
  unsigned database_ = 0;
};

class AofBaseWriterTest : public testing::Test {
 protected:
  void fill() {
    put_string(keyspace_, 0, "number", "42");
    put_string(keyspace_, 0, "", "");
    put_string(keyspace_, 0, "long", std::string(10'000, 'x') + "end", 1'800'000'000'000);
    put_string(keyspace_, 2, "expired", std::string("\r\n\0", 3), 1);
    for (const auto layout : filters::kLayouts) {
      const std::string name(core::bloom::layout_name(layout));
      put_filter(keyspace_, 1, name + " grown", parameters_of(layout, 0.01, 10, 2), 500);
      put_filter(keyspace_, 1, name + " empty", parameters_of(layout, 0.001, 1000, 0), 0);
    }
    // This filter is much larger than the buffer for writing.
    put_filter(keyspace_, 2, "big",
               parameters_of(filters::ValkeyBloomLayout::kId, 0.01, 2'000'000, 2), 100);
    const auto key = keyspace_.ref("native grown");
    keyspace_.set_expiry(1, key, *keyspace_.find(1, key, core::keyspace::kIgnoreExpiry),
                         1'900'000'000'000);
  }

  Keyspace keyspace_{kDatabases, kHashSeed};
  virtual_disk::VirtualDisk disk_;
};

TEST_F(AofBaseWriterTest, KeyspacesSurviveARoundTrip) {
  fill();
  for (const size_t piece_bytes : {size_t{7}, size_t{1000}, size_t{1} << 20}) {
    SCOPED_TRACE(piece_bytes);
    uint64_t reported_bytes = 0;
    CommandBaseOptions options{piece_bytes, {}};
    options.on_progress = [&](const RdbProgress& progress) { reported_bytes = progress.bytes; };
    const auto written = write_command_base_file(disk_, kPath, keyspace_, options);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->keys, snapshots::contents(keyspace_).size());
    EXPECT_EQ(reported_bytes, written->bytes);
    const auto scan = scan_aof(disk_, kPath);
    ASSERT_TRUE(scan);
    EXPECT_EQ(scan->condition, AofScan::Condition::kWhole) << scan->reason;
    EXPECT_TRUE(scan->has_effect_semantics);
    EXPECT_EQ(scan->size_bytes, written->bytes);
    Keyspace loaded(kDatabases, kHashSeed + 1);
    Replayer replayer(loaded);
    const auto replayed = replay_aof(
        disk_, kPath, *scan, [&](const AofCommand& command) { return replayer.execute(command); });
    ASSERT_TRUE(replayed) << replayed.error().message;
    EXPECT_EQ(snapshots::contents(loaded), snapshots::contents(keyspace_));
    constexpr size_t kHeaderBytesMax = 1000;
    EXPECT_LE(replayer.longest_word, std::max(piece_bytes, kHeaderBytesMax));
    EXPECT_EQ(replayer.loads, 3) << "valkey-bloom supports no other command";
  }
}

TEST_F(AofBaseWriterTest, EmptyKeyspaceGivesAFileOfOurs) {
  ASSERT_TRUE(write_command_base_file(disk_, kPath, keyspace_, {}));
  const auto scan = scan_aof(disk_, kPath);
  ASSERT_TRUE(scan);
  EXPECT_EQ(scan->condition, AofScan::Condition::kWhole);
  EXPECT_TRUE(scan->has_effect_semantics);
  EXPECT_EQ(scan->command_count, 0U);
}

TEST_F(AofBaseWriterTest, FailureLeavesNoFile) {
  fill();
  size_t failures = 0;
  for (uint64_t n = 1;; ++n) {
    disk_.restart_count();
    disk_.fail_operation(n);
    const auto written = write_command_base_file(disk_, kPath, keyspace_, {64, {}});
    disk_.restart_count();
    if (written) break;
    ++failures;
    EXPECT_FALSE(disk_.exists(kPath)) << n;
  }
  EXPECT_GE(failures, 3U);
}

}  // namespace
}  // namespace persistence
