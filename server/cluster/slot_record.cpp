// SPDX-License-Identifier: MIT
#include "server/cluster/slot_record.h"

#include <fmt/format.h>

#include "persistence/bytes/crc64.h"

namespace server::cluster {

std::string slots_checksum(const Topology& topology) {
  std::string text;
  for (const Shard& shard : topology.shards) {
    text += fmt::format("{}:{};", shard.name, slot_ranges_text(shard.slots));
  }
  return fmt::format("{:016x}", persistence::crc64(0, text));
}

core::Result<> SlotRecord::check(const Topology& seen, const TopologyVersion& known) const {
  const std::string present = slots_checksum(seen);
  if (present == checksum) return {};
  const bool is_first = known.revision == 0;
  if (is_first ? checksum.empty() : present == slots_checksum(known.topology)) return {};
  return core::Error{fmt::format(
      "ERR topology: its slots changed without a record of a move (checksum {}, recorded is {})",
      present, checksum.empty() ? "none" : checksum)};
}

}  // namespace server::cluster
