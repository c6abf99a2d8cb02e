// SPDX-License-Identifier: MIT
//
// Aborts if an append log file is read incorrectly. The replayed commands must be those of the
// valid prefix, and a file truncated to its valid prefix must have no fault.
//
// If the first byte of an input is even, the remaining bytes are the whole file. If it is odd, the
// first half of the remaining bytes gets Bloomery's header and checksum line, so that the fuzzer
// need not guess checksums.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "persistence/aof/aof_reader.h"
#include "tests/support/virtual_disk.h"

namespace {

using persistence::AofScan;
using Condition = AofScan::Condition;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::string file_of_ours(std::string_view rest) {
  std::string file;
  persistence::RunningChecksum checksum;
  persistence::append_aof_header(file, checksum);
  // The first half of the input becomes a batch that ends with a checksum line. The second half
  // becomes the tail of the file, after this line.
  std::string batch(rest.substr(0, rest.size() / 2));
  persistence::end_aof_batch(batch, checksum);
  return file + batch + std::string(rest.substr(rest.size() / 2));
}

struct Reading {
  AofScan scan;
  std::string commands;
  uint64_t count = 0;
};

Reading read(const std::string& bytes) {
  virtual_disk::VirtualDisk disk;
  disk.put("f", bytes);
  Reading reading;
  reading.scan = persistence::scan_aof(disk, "f").value();
  const AofScan& scan = reading.scan;
  require(scan.sound_bytes <= bytes.size(), "more sound bytes than there are");
  require(scan.fault_offset <= bytes.size(), "the fault lies behind the end");
  require((scan.condition == Condition::kWhole) == scan.reason.empty(), "a fault without reason");
  require(scan.condition != Condition::kWhole || scan.sound_bytes == bytes.size(),
          "a whole file with a tail");
  require(scan.checksum.size_bytes() == scan.sound_bytes, "the checksum covers something else");
  if (scan.condition == Condition::kDamaged) return reading;
  const auto keep = [&](const persistence::AofCommand& command) -> core::Result<> {
    require(!command.arguments.empty(), "a command has no argument");
    require(command.offset < scan.sound_bytes, "a command behind the sound part");
    for (const std::string_view argument : command.arguments) reading.commands += argument;
    reading.commands += '\n';
    ++reading.count;
    return {};
  };
  require(bool(persistence::replay_aof(disk, "f", scan, keep)), "the passes disagree");
  require(reading.count == scan.command_count, "not all commands were handed out");
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string bytes = data[0] % 2 == 0 ? std::string(rest) : file_of_ours(rest);
  const Reading reading = read(bytes);
  if (reading.scan.condition != Condition::kTorn) return 0;
  const Reading cut = read(bytes.substr(0, reading.scan.sound_bytes));
  require(cut.scan.condition == Condition::kWhole, "a file that was cut is not whole");
  require(cut.commands == reading.commands, "cutting changed the commands");
  return 0;
}
