// SPDX-License-Identifier: MIT
//
// AofIncrement: an incremental file of an append log while it is written. It contains batches of
// commands, each followed by its checksum line.
//
// Invariants: the file contains whole batches, plus possibly part of a batch whose write has
// failed; that part is cut off before the next batch. size_bytes() and the checksum cover the whole
// batches.
// Thread safety: none; AofWriter guards the increment. sync() of the file may run in parallel with
// write() and truncate().
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
  // Creates an increment without a file, which accepts no bytes.
  AofIncrement() = default;
  // Creates a file. Its header is on the disk when the call returns.
  static core::Result<AofIncrement> create(FileSystem& files, const std::string& path);
  // Continues a valid file of Bloomery after the last byte that was read. If a tail was cut off,
  // whole commands may follow the last checksum line. So resume() always appends another checksum
  // line and syncs the file. A later power cut then cannot affect these commands.
  static core::Result<AofIncrement> resume(std::shared_ptr<AppendFile> file, uint64_t size_bytes,
                                           const RunningChecksum& checksum);

  // Cuts off bytes that a failed write may have left.
  core::Result<> cut_back();
  // Writes the commands and a checksum line. After an error `batch` is unchanged. REQUIRES:
  // cut_back() has succeeded since the last error.
  core::Result<> write(std::string& batch);

  // Returns the file; null if there is none.
  const std::shared_ptr<AppendFile>& file() const { return file_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  AofIncrement(std::shared_ptr<AppendFile> file, uint64_t size_bytes,
               const RunningChecksum& checksum);

  std::shared_ptr<AppendFile> file_;
  uint64_t size_bytes_ = 0;
  RunningChecksum checksum_;
  bool must_cut_ = false;  // true if the file may hold part of a batch
};

}  // namespace persistence
