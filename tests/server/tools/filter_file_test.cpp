// SPDX-License-Identifier: MIT
//
// Tests the offline filter builder: the content of the files that it writes, and the files that
// exist after each fault.
#include "server/tools/filter_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/bloom/layouts.h"
#include "core/keyspace/keyspace.h"
#include "tests/support/budget.h"
#include "tests/support/error_matcher.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"
#include "tests/support/snapshots.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using core::keyspace::Keyspace;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

const core::UnlimitedMemory kUnlimitedBuild;

// A stream of items in memory that behaves like a file or a pipe.
class TextStream final : public ItemStream {
 public:
  TextStream(std::string bytes, bool can_rewind)
      : bytes_(std::move(bytes)), can_rewind_(can_rewind) {}
  core::Result<size_t> read(std::span<char> out) override {
    if (position_ >= fails_at_) return core::Error{"ERR can't read 'items': Input/output error"};
    const size_t size = bytes_.copy(out.data(), std::min<size_t>(out.size(), 1000), position_);
    position_ += size;
    return size;
  }
  bool can_rewind() const override { return can_rewind_; }
  core::Result<> rewind() override {
    position_ = 0;
    return {};
  }
  void fail_at(size_t position) { fails_at_ = position; }

 private:
  const std::string bytes_;
  const bool can_rewind_;
  size_t position_ = 0;
  size_t fails_at_ = std::string::npos;
};

std::vector<std::string> some_items(int count) {
  std::vector<std::string> items;
  for (int i = 0; i < count; ++i) items.push_back(fmt::format("item:{}", i % (count * 3 / 4)));
  return items;
}

std::string lines_of(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += item + '\n';
  return text;
}

FilterFileRequest request_for(core::bloom::LayoutId layout, uint64_t capacity) {
  FilterFileRequest request;
  request.path = "/data/out.rdb";
  request.key = "seen";
  request.parameters = filters::parameters(layout, capacity, 0.01);
  request.counts_items = capacity == 0;
  request.block_bytes = 20000;
  request.server_version = "7.4.0";
  request.file_number = 17;
  return request;
}

// As with BF.RESERVE, the native layout of so low an error rate depends on the capacity.
TEST(FilterFileVersionTest, FollowsFromTheCapacity) {
  VirtualDisk disk;
  disk.add_directory("/data");
  core::ThreadTeam team(3);
  const auto layout_of = [&](uint64_t capacity, double error_rate) {
    FilterFileRequest request = request_for(core::bloom::kNativeLayout, capacity);
    request.parameters.error_rate = error_rate;
    request.native_version = 2;
    TextStream items(lines_of(some_items(1000)), true);
    return build_filter_file({disk, kUnlimitedBuild, team}, items, request)->layout;
  };
  for (const uint64_t capacity : {0U, 1000U}) {
    EXPECT_EQ(layout_of(capacity, 1e-7), core::bloom::kNativeLayout) << capacity;
    EXPECT_EQ(layout_of(capacity, 1e-6), core::bloom::kLaneLayout) << capacity;
  }
  EXPECT_EQ(layout_of(100, 1e-7), core::bloom::kLaneLayout);
}

class FilterFileTest : public testing::TestWithParam<core::bloom::LayoutId> {
 protected:
  FilterFileTest() { disk_.add_directory("/data"); }

  core::Result<FilterFileFigures> build(const FilterFileRequest& request, ItemStream& items) {
    return build_filter_file({disk_, kUnlimitedBuild, team_}, items, request);
  }
  std::vector<std::string> names() { return *disk_.list("/data"); }

  VirtualDisk disk_;
  core::ThreadTeam team_{3};
};
INSTANTIATE_TEST_SUITE_P(Layouts, FilterFileTest, testing::ValuesIn(filters::kLayouts));

// Returns the module value of a filter to which the items were added one by one, as in a server.
std::string served_value(const core::bloom::FilterParameters& parameters,
                         const std::vector<std::string>& items) {
  auto filter = *core::bloom::ScalableFilter::create(parameters, kUnlimitedBuild);
  for (const std::string& item : items) filter->add(item, kUnlimitedBuild);
  std::string bytes;
  persistence::ByteWriter writer(bytes);
  persistence::encode_filter(writer, *filter, persistence::Packing::kNever);
  return bytes;
}

TEST_P(FilterFileTest, EqualsAServersFilterBitForBit) {
  constexpr int kItems = support::rounds(30'000, 6'000);
  const auto items = some_items(kItems);
  for (const uint64_t capacity : {0, 100, kItems * 4 / 3}) {
    for (const bool can_rewind : {false, true}) {
      const auto request = request_for(GetParam(), capacity);
      TextStream stream(lines_of(items), can_rewind);
      const auto built = build(request, stream);
      ASSERT_TRUE(built) << built.error().message;
      EXPECT_EQ(built->record_count, items.size());
      EXPECT_EQ(names(), std::vector<std::string>{"out.rdb"});
      const std::string file = *disk_.content("/data/out.rdb");
      EXPECT_EQ(built->file_bytes, file.size());

      Keyspace keyspace(1, 1);
      ASSERT_TRUE(snapshots::load(file, keyspace));
      const auto contents = snapshots::contents(keyspace);
      ASSERT_EQ(contents.size(), 1U);
      auto parameters = request.parameters;
      if (capacity == 0) parameters.capacity = items.size();
      const auto& [place, value] = *contents.begin();
      EXPECT_EQ(place.second, "seen");
      EXPECT_EQ(value.bytes, served_value(parameters, items));
    }
  }
}

TEST_P(FilterFileTest, RecordsWithLengthsMayHoldAnyBytes) {
  const std::vector<std::string> items{"a\nb", "", std::string(3, '\0'), "a\nb"};
  std::string bytes;
  for (const std::string& item : items) {
    bytes += static_cast<char>(item.size()) + std::string(3, '\0') + item;
  }
  auto request = request_for(GetParam(), 0);
  request.format = RecordFormat::kLength32;
  TextStream stream(bytes, false);
  const auto built = build(request, stream);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->record_count, 4U);
  EXPECT_EQ(built->item_count, 3U);
}

TEST_P(FilterFileTest, EveryDiskFaultKeepsTheOldFile) {
  const std::string text = lines_of(some_items(3000));
  for (uint64_t number = 1;; ++number) {
    disk_.put("/data/out.rdb", "the old file");
    disk_.restart_count();
    disk_.fail_operation(number);
    TextStream stream(text, false);
    const auto built = build(request_for(GetParam(), 0), stream);
    const bool was_hit = disk_.operation_count() >= number;
    if (!was_hit) {
      EXPECT_TRUE(built);
      break;
    }
    // If only the final sync of the directory fails, the new file has already replaced the old one.
    const bool is_replaced = *disk_.content("/data/out.rdb") != "the old file";
    if (!built && !is_replaced) {
      for (const std::string& name : names()) {
        // If the error says that the temporary file could not be removed, that file still exists.
        if (built.error().message.find("can't remove") != std::string::npos) continue;
        EXPECT_EQ(name, "out.rdb") << number << ": " << built.error().message;
      }
    }
    for (const std::string& name : names()) ASSERT_TRUE(disk_.remove("/data/" + name));
    ASSERT_LT(number, 1000U);
  }
}

TEST_P(FilterFileTest, FullDiskIsReportedAndLeavesNoFile) {
  const std::string text = lines_of(some_items(3000));
  for (const bool is_pipe : {false, true}) {
    for (const uint64_t free_bytes : {0, 1000, 8000}) {
      VirtualDisk disk;
      disk.add_directory("/data");
      disk.put("/data/out.rdb", "the old file");
      disk.set_free_bytes(free_bytes);
      TextStream stream(text, !is_pipe);
      auto request = request_for(GetParam(), 0);
      request.parameters.error_rate = 1e-6;
      const auto built = build_filter_file({disk, kUnlimitedBuild, team_}, stream, request);
      ASSERT_FALSE(built) << free_bytes;
      EXPECT_NE(built.error().message.find("No space left"), std::string::npos);
      EXPECT_EQ(*disk.list("/data"), std::vector<std::string>{"out.rdb"});
      EXPECT_EQ(*disk.content("/data/out.rdb"), "the old file");
    }
  }
}

TEST_P(FilterFileTest, NewFileSurvivesAPowerCut) {
  TextStream stream(lines_of(some_items(3000)), true);
  disk_.put("/data/out.rdb", "the old file");
  ASSERT_TRUE(build(request_for(GetParam(), 0), stream));
  const std::string file = *disk_.content("/data/out.rdb");
  disk_.cut_power(Unsynced::kLost);
  EXPECT_EQ(*disk_.content("/data/out.rdb"), file);
  EXPECT_EQ(names(), std::vector<std::string>{"out.rdb"});
}

TEST_P(FilterFileTest, ReadErrorIsReportedAndLeavesNoFile) {
  for (const bool can_rewind : {false, true}) {
    for (const uint64_t capacity : {0, 5000}) {
      TextStream stream(lines_of(some_items(5000)), can_rewind);
      stream.fail_at(20000);
      const auto built = build(request_for(GetParam(), capacity), stream);
      ASSERT_FALSE(built);
      EXPECT_EQ(built.error().message, "ERR can't read 'items': Input/output error");
      EXPECT_TRUE(names().empty());
    }
  }
}

TEST_P(FilterFileTest, InvalidPathIsRejectedBeforeReading) {
  const std::string pipe = fmt::format("{}bloomery_pipe_{}", ::testing::TempDir(), ::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  auto request = request_for(GetParam(), 5000);
  request.path = pipe;
  TextStream stream("a\n", false);
  stream.fail_at(0);
  const auto built = build_filter_file({persistence::posix_file_system(), kUnlimitedBuild, team_},
                                       stream, request);
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().message, is_error("ERR", "'" + pipe + "'"));
  EXPECT_EQ(::unlink(pipe.c_str()), 0);
}

TEST_P(FilterFileTest, OtherErrorsLeaveNoFile) {
  const auto refused = [&](const FilterFileRequest& request, const std::string& text,
                           const core::MemoryBudget& budget, std::string_view reason) {
    TextStream stream(text, false);
    const auto built = build_filter_file({disk_, budget, team_}, stream, request);
    ASSERT_FALSE(built) << reason;
    EXPECT_NE(built.error().message.find(reason), std::string::npos) << built.error().message;
    EXPECT_TRUE(names().empty()) << reason;
  };
  const std::string text = lines_of(some_items(20000));
  auto request = request_for(GetParam(), 0);
  refused(request, "", kUnlimitedBuild, "no items");
  refused(request, text, support::Budget(100), "Insufficient memory");
  refused(request_for(GetParam(), 100), text, support::Budget(2000), "does not fit in memory");
  request.record_bytes_max = request.block_bytes = 5;
  refused(request, text, kUnlimitedBuild, "longer than 5 bytes");
  request = request_for(GetParam(), 10);
  request.format = RecordFormat::kLength32;
  refused(request, std::string("\x09\0\0\0abc", 7), kUnlimitedBuild, "is cut off");
  request.path = "/nowhere/out.rdb";
  refused(request, text, kUnlimitedBuild, "No such file or directory");
}

TEST_P(FilterFileTest, EmptyFilterNeedsOnlyACapacity) {
  TextStream stream("", false);
  const auto built = build(request_for(GetParam(), 1000), stream);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->item_count, 0U);
  EXPECT_EQ(built->capacity, 1000U);
}

TEST_P(FilterFileTest, ProgressIsReportedPerStep) {
  auto request = request_for(GetParam(), 0);
  std::vector<BuildStep> steps;
  uint64_t last_done = 0;
  request.on_progress = [&](const BuildProgress& progress) {
    if (steps.empty() || steps.back() != progress.step) {
      steps.push_back(progress.step);
      last_done = 0;
    }
    EXPECT_GE(progress.done_bytes, last_done);
    last_done = progress.done_bytes;
  };
  TextStream stream(lines_of(some_items(20000)), true);
  ASSERT_TRUE(build(request, stream));
  EXPECT_EQ(steps, (std::vector{BuildStep::kCount, BuildStep::kAdd, BuildStep::kWrite}));
}

}  // namespace
}  // namespace server
