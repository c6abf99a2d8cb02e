// SPDX-License-Identifier: MIT
#include "server/replication/stream/ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace server {

std::string random_id() {
  std::random_device device;
  std::string id;
  while (id.size() < kReplicationIdSize) id += fmt::format("{:08x}", device());
  return id;
}

bool is_replication_id(std::string_view text) {
  return text.size() == kReplicationIdSize &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

void ReplicationIds::shift_to(std::string_view new_id, uint64_t offset) {
  id2 = id;
  second_offset = static_cast<int64_t>(offset) + 1;
  id = new_id;
}

bool ReplicationIds::are_continued_from(std::string_view asked_id, int64_t asked_offset) const {
  const auto is = [asked_id](std::string_view known) {
    return std::ranges::equal(asked_id, known, [](char a, char b) {
      return a == b || (a >= 'A' && a <= 'F' && a + ('a' - 'A') == b);
    });
  };
  return is(id) || (is(id2) && asked_offset <= second_offset);
}

}  // namespace server
