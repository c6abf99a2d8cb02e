// SPDX-License-Identifier: MIT
//
// Aborts if an accepted snapshot changes when it is written and read again. Run it with a memory
// limit of 64 MiB (option -malloc_limit_mb=64), because an input of a few KiB must never make the
// reader allocate more.
//
// The first byte of an input chooses the reader's options, and whether the reader knows the size of
// the snapshot. Checksums are ignored, because few inputs would have valid ones.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/snapshots.h"

namespace {

using core::keyspace::Keyspace;

constexpr unsigned kDatabases = 4;
constexpr uint64_t kHashSeed = 1;

class SmallBudget final : public core::MemoryBudget {
 public:
  uint64_t available_bytes() const override { return uint64_t{32} << 20; }
};

// A source of unknown size that returns a few bytes at a time.
class Socket final : public persistence::ByteSource {
 public:
  explicit Socket(std::string_view bytes) : memory_(bytes) {}
  core::Result<size_t> read(std::span<char> out) override {
    return memory_.read(out.first(std::min(out.size(), size_t{61})));
  }

 private:
  persistence::MemorySource memory_;
};

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

bool read(uint8_t way, std::string_view bytes, Keyspace& keyspace) {
  persistence::RdbReadOptions options;
  options.checks_sum = false;
  options.foreign_types =
      (way & 1) != 0 ? persistence::ForeignTypes::kRefuse : persistence::ForeignTypes::kSkip;
  options.may_be_followed = (way & 2) != 0;
  options.buffer_bytes = (way & 4) != 0 ? 16 : size_t{64} << 10;
  persistence::KeyspaceLoader loader(keyspace, core::keyspace::kIgnoreExpiry);
  if ((way & 8) != 0) {
    Socket socket(bytes);
    return bool(persistence::read_rdb(socket, loader, SmallBudget(), options));
  }
  // The memory budget has no limit here. So the reader must limit its allocations by the size of
  // this source, which the reader knows.
  persistence::MemorySource memory(bytes);
  return bool(persistence::read_rdb(memory, loader, core::UnlimitedMemory(), options));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Keyspace keyspace(kDatabases, kHashSeed);
  if (!read(data[0], bytes, keyspace)) return 0;
  std::string written;
  persistence::StringSink sink(written);
  require(bool(persistence::write_rdb(sink, keyspace, {})), "a keyspace cannot be written");
  Keyspace again(kDatabases, kHashSeed);
  require(bool(snapshots::load(written, again)), "a snapshot that was written cannot be read");
  require(snapshots::contents(again) == snapshots::contents(keyspace),
          "a keyspace changed on its way");
  return 0;
}
