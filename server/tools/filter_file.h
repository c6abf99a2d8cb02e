// SPDX-License-Identifier: MIT
//
// build_filter_file: builds a filter from a stream of items and saves it as a snapshot with one
// key, without a server.
//
// Invariants: an existing file at the path stays until the new file, complete and synced, has
// replaced it. After an error no file of this process is left. The saved filter equals that of a
// server that receives the same items in the same order. An item that occurs twice counts once.
// Thread safety: build_filter_file() keeps no state. No other thread may use the ThreadTeam during
// the call.
// Source: docs/offline_builder.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/bloom/parameters.h"
#include "core/memory/memory_budget.h"
#include "core/result.h"
#include "core/thread_team.h"
#include "persistence/files/file_system.h"
#include "server/tools/item_stream.h"
#include "server/tools/record_blocks.h"

namespace server {

enum class BuildStep : uint8_t { kCount, kAdd, kWrite };

struct BuildProgress {
  BuildStep step = BuildStep::kCount;
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  // total number of bytes to process; 0 if unknown
  uint64_t record_count = 0;
};

struct FilterFileRequest {
  std::string path;
  std::string key;
  // The settings of the filter. If `counts_items` is set, the number of items replaces the
  // capacity.
  core::bloom::FilterParameters parameters;
  bool counts_items = false;
  // The version of the native layout, which also depends on the capacity. Ignored for the others.
  int native_version = core::bloom::kNativeVersionMin;
  RecordFormat format = RecordFormat::kLines;
  size_t block_bytes = RecordOptions{}.block_bytes;
  size_t record_bytes_max = kRecordBytesMax;
  // The Redis version that is written to the snapshot's AUX field redis-ver.
  std::string server_version;
  int64_t created_at_s = 0;
  // A random number, which makes the names of the temporary files unique. The files lie in the
  // output's directory.
  uint64_t file_number = 0;
  std::function<void(const BuildProgress&)> on_progress;
};

struct FilterFileFigures {
  core::bloom::LayoutId layout = core::bloom::kNativeLayout;
  uint64_t record_count = 0;
  uint64_t item_count = 0;
  uint64_t capacity = 0;
  uint64_t layer_count = 0;
  uint64_t filter_bytes = 0;
  uint64_t file_bytes = 0;
};

// The dependencies of build_filter_file(), all of which must outlive the call.
struct BuildMeans {
  persistence::FileSystem& files;
  const core::MemoryBudget& budget;
  core::ThreadTeam& team;
};

// Builds the filter and writes the file. Errors: those of the stream, its records and the files;
// insufficient memory.
core::Result<FilterFileFigures> build_filter_file(const BuildMeans& means, ItemStream& items,
                                                  const FilterFileRequest& request);

// Returns the temporary name of the snapshot, which a signal handler can remove.
std::string temporary_filter_file(const FilterFileRequest& request);

}  // namespace server
