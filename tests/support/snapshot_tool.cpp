// SPDX-License-Identifier: MIT
//
// Reads and writes snapshots for the system tests, which compare the output with that of Redis.
//
//   snapshot_tool list FILE         prints a line per key: database, name, kind, expiry and value.
//                                   Names and values are printed in hexadecimal.
//                                   A line `foreign TYPE COUNT` counts skipped values of a type.
//   snapshot_tool copy FROM TO [no-compression] [no-checksum]
//                                   loads FROM without its foreign types, and saves it as TO
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_loader.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/snapshots.h"

namespace {

using core::keyspace::Entry;
using core::keyspace::Keyspace;

constexpr unsigned kDatabases = 16;
constexpr uint64_t kHashSeed = 1;

std::string hexadecimal(std::string_view bytes) {
  std::string text = "x";
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

int fail(std::string_view message) {
  fmt::print(stderr, "{}\n", message);
  return EXIT_FAILURE;
}

core::Result<> load(const std::string& path, persistence::KeyspaceLoader& loader) {
  const auto file = persistence::posix_file_system().open_input(path);
  if (!file) return file.error();
  persistence::RdbReadOptions options;
  options.foreign_types = persistence::ForeignTypes::kSkip;
  const auto read = persistence::read_rdb(**file, loader, core::UnlimitedMemory(), options);
  if (!read) return read.error();
  return {};
}

void list(const Keyspace& keyspace, const persistence::KeyspaceLoader& loader) {
  for (unsigned database = 0; database < kDatabases; ++database) {
    keyspace.for_each(database, [database](const Entry& entry) {
      fmt::print("{} {} {} {} {}\n", database, hexadecimal(entry.key()),
                 entry.is_string() ? "string" : "filter", entry.expires_at_ms(),
                 hexadecimal(snapshots::bytes_of(entry)));
    });
  }
  for (const auto& [type, count] : loader.foreign_types()) {
    fmt::print("foreign {} {}\n", type, count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool lists = arguments.size() == 2 && arguments[0] == "list";
  const bool copies = arguments.size() >= 3 && arguments[0] == "copy";
  if (!lists && !copies) return fail("usage: snapshot_tool list FILE | copy FROM TO [no-...]");
  Keyspace keyspace(kDatabases, kHashSeed);
  persistence::KeyspaceLoader loader(keyspace, core::keyspace::kIgnoreExpiry);
  if (const auto loaded = load(arguments[1], loader); !loaded) return fail(loaded.error().message);
  if (lists) {
    list(keyspace, loader);
    return EXIT_SUCCESS;
  }
  persistence::RdbWriteOptions options;
  for (size_t i = 3; i < arguments.size(); ++i) {
    if (arguments[i] == "no-compression") options.compresses = false;
    if (arguments[i] == "no-checksum") options.has_sum = false;
  }
  const auto saved = persistence::write_rdb_file(persistence::posix_file_system(), arguments[2],
                                                 keyspace, options);
  return saved ? EXIT_SUCCESS : fail(saved.error().message);
}
