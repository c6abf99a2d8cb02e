// SPDX-License-Identifier: MIT
//
// PairWriter writes pairs of a label and a value, such as the elements of a map. The caller writes
// the header of the map.
//
// Thread safety: belongs to the thread that writes the reply.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "protocol/reply_writer.h"

namespace server {

class PairWriter {
 public:
  explicit PairWriter(protocol::ReplyWriter& reply) : reply_(reply) {}

  void text(std::string_view label, std::string_view value) {
    reply_.bulk(label);
    reply_.bulk(value);
  }
  void integer(std::string_view label, std::integral auto value) {
    reply_.bulk(label);
    reply_.integer(static_cast<int64_t>(value));
  }
  // Writes null if there is no value.
  void integer(std::string_view label, std::optional<uint64_t> value) {
    if (value) return integer(label, *value);
    reply_.bulk(label);
    reply_.null();
  }
  // Writes the number with the fewest digits, or null if there is no value.
  void number(std::string_view label, std::optional<double> value) {
    reply_.bulk(label);
    value ? reply_.shortest_number(*value) : reply_.null();
  }
  // Writes the number with the digits that Redis writes.
  void redis_number(std::string_view label, double value) {
    reply_.bulk(label);
    reply_.number(value);
  }
  void flag(std::string_view label, bool value) {
    reply_.bulk(label);
    reply_.boolean(value);
  }

 private:
  protocol::ReplyWriter& reply_;
};

}  // namespace server
