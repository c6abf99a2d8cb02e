// SPDX-License-Identifier: MIT
#include "server/commands/info/info.h"

#include <algorithm>

#include "protocol/arguments.h"
#include "server/commands/info/section.h"

namespace server::info {
namespace {

using protocol::equals_ignore_case;

// Which forms of INFO include a section. INFO <name> always includes the section that it names.
enum class Presence : uint8_t {
  kDefault,     // INFO without section names, INFO all and INFO everything include the section
  kAll,         // INFO all and INFO everything include the section
  kEverything,  // INFO everything and INFO modules include the section, like a module's section
  kNamed,       // only INFO <name> includes the section: another one has the same values
};

struct Section {
  std::string_view title;
  // A second name by which clients can select the section: "module_list", or "bf" for the sections
  // of the filter module.
  std::string_view group;
  Presence presence;
  Writer write;
};

constexpr Section kSections[] = {
    {"Server", "", Presence::kDefault, write_server},
    {"Clients", "", Presence::kDefault, write_clients},
    {"Memory", "", Presence::kDefault, write_memory},
    {"Persistence", "", Presence::kDefault, write_persistence},
    {"Stats", "", Presence::kDefault, write_stats},
    {"Replication", "", Presence::kDefault, write_replication},
    {"CPU", "", Presence::kDefault, write_cpu},
    {"Modules", "module_list", Presence::kDefault, write_module_list},
    {"Commandstats", "", Presence::kAll, write_commandstats},
    {"Errorstats", "", Presence::kDefault, write_errorstats},
    {"Latencystats", "", Presence::kAll, write_latencystats},
    {"Cluster", "", Presence::kDefault, write_cluster},
    {"Keyspace", "", Presence::kDefault, write_keyspace},
    {"bf_bloom_core_metrics", "bf", Presence::kEverything, write_bloom},
    {"bf_bloom_defrag_metrics", "bf", Presence::kEverything, write_bloom_defrag},
    {"Bloom", "", Presence::kNamed, write_bloom_objects},
};

bool asks_for(std::string_view name, const Section& section) {
  if (equals_ignore_case(name, section.title)) return true;
  if (!section.group.empty() && equals_ignore_case(name, section.group)) return true;
  switch (section.presence) {
    case Presence::kDefault:
      if (equals_ignore_case(name, "default")) return true;
      [[fallthrough]];
    case Presence::kAll:
      return equals_ignore_case(name, "all") || equals_ignore_case(name, "everything");
    case Presence::kEverything:
      return equals_ignore_case(name, "modules") || equals_ignore_case(name, "everything");
    case Presence::kNamed:
      return false;
  }
  return false;
}

}  // namespace

std::string text_of(const Source& source, std::span<const std::string_view> names) {
  constexpr std::string_view kDefault[] = {"default"};
  if (names.empty()) names = kDefault;
  std::string text;
  Lines lines(text);
  for (const Section& section : kSections) {
    const bool asked = std::any_of(names.begin(), names.end(),
                                   [&](std::string_view name) { return asks_for(name, section); });
    if (!asked) continue;
    if (!text.empty()) text += "\r\n";
    text += fmt::format("# {}\r\n", section.title);
    section.write(source, lines);
  }
  return text;
}

}  // namespace server::info
