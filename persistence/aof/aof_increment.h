// SPDX-License-Identifier: MIT
//
// AofIncrement: an incremental file of an append log while it is written: commands in batches, each
// with its checksum line.
//
// Invariants: the file holds whole batches, besides part of one whose write has failed: that is cut
// off before the next one. size_bytes() and the checksum are those of the whole ones.
// Thread safety: none; AofWriter guards it. sync() of its file may run beside write().
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "persistence/aof/aof_format.h"

namespace persistence {

class AppendFile;
class FileSystem;

class AofIncrement {
 public:
  // None: takes no bytes.
  AofIncrement() = default;
  // A new one, whose header is on the disk.
  static core::Result<AofIncrement> create(FileSystem& files, const std::string& path);
  // Goes on in a sound file of ours, as far as it was read. Where a tail was cut off, whole
  // commands may stand behind the last checksum line: one more line, which is synced, makes that
  // place one that a power cut cannot reach any more.
  static core::Result<AofIncrement> resume(std::shared_ptr<AppendFile> file, uint64_t size_bytes,
                                           const RunningChecksum& checksum);

  // Cuts off what a failed write may have left.
  core::Result<> cut_back();
  // Writes the commands and a checksum line. After an error `batch` is as it was.
  // REQUIRES: cut_back() has succeeded since the last error.
  core::Result<> write(std::string& batch);

  // Null when there is none.
  const std::shared_ptr<AppendFile>& file() const { return file_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  AofIncrement(std::shared_ptr<AppendFile> file, uint64_t size_bytes,
               const RunningChecksum& checksum);

  std::shared_ptr<AppendFile> file_;
  uint64_t size_bytes_ = 0;
  RunningChecksum checksum_;
  bool must_cut_ = false;  // the file may hold part of a batch
};

}  // namespace persistence
