// SPDX-License-Identifier: MIT
//
// DataReplacer: replaces all data by a snapshot that a leader has sent.
//
// Invariants: after any failure memory and disk hold all of the old data, all of the new, or
// nothing. Clients get LOADING during the replacement, and none of their commands is running when
// the old data are dropped.
// Thread safety: one thread at a time may call the members. It must hold neither the stream's mutex
// nor the lock of a stripe.
#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "server/durability/data/data_parts.h"

namespace server {

class CommandDrain;
class DataLoader;
class DataWriter;
class LogSwitch;
class Saves;

// Replacement: a received and checked snapshot, whose file becomes the server's snapshot.
struct Replacement {
  std::string path;
  // The stream's mutex is held during all callbacks except is_wanted and the calls of on_piece that
  // precede may_begin(). may_begin() returns false if the snapshot was cancelled.
  std::function<bool()> may_begin = [] { return true; };
  // Returns false if the load must be abandoned. Thread-safe.
  std::function<bool()> is_wanted = [] { return true; };
  std::function<void()> on_piece = [] {};
  std::function<void()> on_loaded = [] {};
  // Called if the data were not replaced although may_begin() returned true.
  std::function<void()> on_kept = [] {};
  std::function<void()> on_lost = [] {};
};

struct DataReplacer {
  // Replaces all data by the snapshot, and begins a new append log. After an error the old data
  // remain, or no data if on_lost was called.
  core::Result<> replace(const Replacement& replacement);

  const DataParts parts;
  const DataWriter& writer;
  LogSwitch& log_switch;
  DataLoader& loader;
  Saves& saves;
  CommandDrain* const commands;  // waits for the commands that are running; null if none can run

 private:
  // These functions require that the save slot is claimed.
  bool await_commands(const std::function<void()>& on_piece);
  core::Result<> place_files(const std::string& path, bool has_base);
  core::Result<> replace_claimed(const Replacement& replacement);
  void lose_data(const core::Error& reason);
};

}  // namespace server
