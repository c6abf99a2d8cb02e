// SPDX-License-Identifier: MIT
//
// ReplicationIds: the id of the replication stream's history, and of the history before this server
// took over.
//
// Invariants: an id is 40 hexadecimal digits. Bytes up to second_offset - 1 are the same under both
// ids; without an earlier history id2 is zeros and second_offset is -1.
// Thread safety: a value.
// Source: Redis 7.0.15's master_replid and master_replid2, docs/replication.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

inline constexpr size_t kReplicationIdSize = 40;

// 40 random hexadecimal digits.
std::string random_id();
bool is_replication_id(std::string_view text);

struct ReplicationIds {
  std::string id = random_id();
  std::string id2 = std::string(kReplicationIdSize, '0');
  int64_t second_offset = -1;

  // A history of its own, which no replica knows.
  void begin_anew() { *this = {}; }
  // The history so far ends at `offset`; whoever followed it to there may go on with the new one.
  void shift(uint64_t offset);
  // As shift(), into a history that has a name already.
  void shift_to(std::string_view new_id, uint64_t offset);
  // Whether byte `asked_offset`, the first that a replica lacks, continues what it has.
  bool are_continued_from(std::string_view asked_id, int64_t asked_offset) const;
};

}  // namespace server
