// SPDX-License-Identifier: MIT
//
// Helpers that write sections of INFO, and the writers listed in the table of sections.
//
// Invariants: a line is `name:value` followed by CR LF. Values contain no line ends, because
// control characters are escaped here.
// Thread safety: each Lines object belongs to one thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/printable.h"
#include "server/commands/info/info.h"

namespace server::info {

class Lines {
 public:
  explicit Lines(std::string& text) : text_(text) {}

  template <class Value>
  void field(std::string_view name, const Value& value) {
    if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      fmt::format_to(std::back_inserter(text_), "{}:{}\r\n", name, core::printable(value));
    } else {
      fmt::format_to(std::back_inserter(text_), "{}:{}\r\n", name, value);
    }
  }
  void ratio(std::string_view name, double value) { field(name, fmt::format("{:.2f}", value)); }
  void percent(std::string_view name, double value) { field(name, fmt::format("{:.2f}%", value)); }
  // Writes a line with the bytes, and a line with the size and its unit: used_memory,
  // used_memory_human.
  void bytes(std::string_view name, uint64_t value);
  // Writes the value 0 for fields of Redis' INFO that have no meaning in Bloomery.
  void zeros(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) field(name, 0);
  }

 private:
  std::string& text_;
};

// Returns the size with a unit, such as "1.50M".
std::string human_bytes(uint64_t value);

using Writer = void (*)(const Source&, Lines&);

void write_server(const Source& source, Lines& lines);
void write_clients(const Source& source, Lines& lines);
void write_memory(const Source& source, Lines& lines);
void write_persistence(const Source& source, Lines& lines);
void write_stats(const Source& source, Lines& lines);
void write_replication(const Source& source, Lines& lines);
void write_cpu(const Source& source, Lines& lines);
void write_module_list(const Source& source, Lines& lines);
void write_commandstats(const Source& source, Lines& lines);
void write_errorstats(const Source& source, Lines& lines);
void write_latencystats(const Source& source, Lines& lines);
void write_cluster(const Source& source, Lines& lines);
void write_keyspace(const Source& source, Lines& lines);
void write_bloom(const Source& source, Lines& lines);
void write_bloom_defrag(const Source& source, Lines& lines);
// Writes the section Bloom with two fields, which a proposal for Valkey's Bloom module defines.
void write_bloom_objects(const Source& source, Lines& lines);

}  // namespace server::info
