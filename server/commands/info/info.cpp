// SPDX-License-Identifier: MIT
#include "server/commands/info/info.h"

#include <algorithm>

#include "protocol/arguments.h"
#include "server/commands/info/section.h"

namespace server::info {
namespace {

using protocol::equals_ignore_case;

// The names that select several sections, or are second names of sections.
constexpr std::string_view kByDefault[] = {"default", "all", "everything"};
constexpr std::string_view kWithModuleList[] = {"module_list", "default", "all", "everything"};
constexpr std::string_view kByAll[] = {"all", "everything"};
constexpr std::string_view kOfFilterModule[] = {"bf", "modules", "everything"};

struct Section {
  std::string_view title;
  // The names that select the section, in addition to its title. The section Bloom has none,
  // because other sections have the same values.
  std::span<const std::string_view> selected_by;
  Writer write;
};

constexpr Section kSections[] = {
    {"Server", kByDefault, write_server},
    {"Clients", kByDefault, write_clients},
    {"Memory", kByDefault, write_memory},
    {"Persistence", kByDefault, write_persistence},
    {"Stats", kByDefault, write_stats},
    {"Replication", kByDefault, write_replication},
    {"CPU", kByDefault, write_cpu},
    {"Modules", kWithModuleList, write_module_list},
    {"Commandstats", kByAll, write_commandstats},
    {"Errorstats", kByDefault, write_errorstats},
    {"Latencystats", kByAll, write_latencystats},
    {"Cluster", kByDefault, write_cluster},
    {"Keyspace", kByDefault, write_keyspace},
    {"bf_bloom_core_metrics", kOfFilterModule, write_bloom},
    {"bf_bloom_defrag_metrics", kOfFilterModule, write_bloom_defrag},
    {"Bloom", {}, write_bloom_objects},
};

bool asks_for(std::string_view name, const Section& section) {
  return equals_ignore_case(name, section.title) ||
         std::ranges::any_of(section.selected_by, [name](std::string_view word) {
           return equals_ignore_case(name, word);
         });
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
