// SPDX-License-Identifier: MIT
//
// Helpers for tests of append log files: a builder of files in this server's format, random
// commands, and the result of reading a file.
//
// Thread safety: one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_reader.h"
#include "tests/support/virtual_disk.h"

namespace aof_files {

using Command = std::vector<std::string>;
using Commands = std::vector<Command>;

inline std::string encode(const Command& command) {
  std::string bytes = "*" + std::to_string(command.size()) + "\r\n";
  for (const std::string& argument : command) {
    bytes += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
  return bytes;
}

// An encoded SET, for tests in which it does not matter which command they use.
inline const std::string kSet = encode({"SET", "k", "v"});

// Builds an append log file in this server's format, batch by batch, and records the commands in
// it.
class OwnFile {
 public:
  OwnFile() { persistence::append_aof_header(bytes_, checksum_); }

  void add(const Command& command) {
    batch_ += encode(command);
    commands_.push_back(command);
    record_boundary();
  }
  void add_transaction(const Commands& commands) {
    batch_ += encode({"MULTI"});
    for (const Command& command : commands) {
      batch_ += encode(command);
      commands_.push_back(command);
    }
    batch_ += encode({"EXEC"});
    record_boundary();
  }
  void end_batch() {
    persistence::end_aof_batch(batch_, checksum_);
    bytes_ += batch_;
    batch_.clear();
  }

  const std::string& bytes() const { return bytes_; }
  const Commands& commands() const { return commands_; }
  // Returns the commands whose bytes all lie within the first `size` bytes of the file.
  Commands commands_before(size_t size) const {
    size_t count = 0;
    for (const auto& [end, commands] : boundaries_) {
      if (end <= size) count = commands;
    }
    return {commands_.begin(), commands_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  void record_boundary() {
    boundaries_.emplace_back(bytes_.size() + batch_.size(), commands_.size());
  }

  std::string bytes_;
  std::string batch_;
  persistence::RunningChecksum checksum_;
  Commands commands_;
  std::vector<std::pair<size_t, size_t>> boundaries_;
};

inline std::string random_bytes(std::minstd_rand& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
  return bytes;
}

inline Command random_command(std::minstd_rand& random) {
  Command command{"SET"};
  const size_t count = 1 + random() % 4;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = random() % 8 == 0 ? random() % 700 : random() % 12;
    switch (random() % 4) {
      case 0:
        command.push_back(random_bytes(random, size));
        break;
      case 1:
        command.emplace_back(size, '\0');
        break;
      case 2:
        // The value contains bytes that look like the RESP headers of a command and like a
        // timestamp annotation of the log.
        command.push_back(std::string("*1\r\n$0\r\n#TS:1\r\n\0\0", 18).substr(0, size));
        break;
      default:
        command.emplace_back(size, 'v');
    }
  }
  return command;
}

// Returns a file with `batch_count` batches of one to six commands or transactions.
inline OwnFile random_file(std::minstd_rand& random, size_t batch_count) {
  OwnFile file;
  for (size_t batch = 0; batch < batch_count; ++batch) {
    for (size_t left = 1 + random() % 6; left > 0; --left) {
      if (random() % 5 == 0) {
        Commands commands;
        for (size_t i = random() % 4; i > 0; --i) commands.push_back(random_command(random));
        file.add_transaction(commands);
      } else {
        file.add(random_command(random));
      }
    }
    file.end_batch();
  }
  return file;
}

struct Reading {
  persistence::AofScan scan;
  Commands commands;
};

// Scans the bytes as an append log file. If they are not damaged, replays their complete commands.
inline Reading read(std::string bytes) {
  virtual_disk::VirtualDisk disk;
  disk.put("dir/file", std::move(bytes));
  Reading reading;
  reading.scan = persistence::scan_aof(disk, "dir/file").value();
  if (reading.scan.condition == persistence::AofScan::Condition::kDamaged) return reading;
  const auto keep = [&](const persistence::AofCommand& command) -> core::Result<> {
    reading.commands.emplace_back(command.arguments.begin(), command.arguments.end());
    return {};
  };
  persistence::replay_aof(disk, "dir/file", reading.scan, keep).value();
  return reading;
}

}  // namespace aof_files
