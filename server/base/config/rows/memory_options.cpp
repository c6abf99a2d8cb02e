// SPDX-License-Identifier: MIT
//
// The rows of the options on memory: maxmemory, the behaviour when used memory exceeds maxmemory,
// and huge pages.
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {

std::vector<Option> memory_options() {
  return {
      {.name = "maxmemory", .kind = OptionKind::kMemory, .default_text = "0"},
      {.name = "maxmemory-policy",
       .kind = OptionKind::kEnum,
       .default_text = "noeviction",
       .choices = {"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru",
                   "allkeys-lfu", "allkeys-random", "noeviction"}},
      {.name = "maxmemory-samples",
       .kind = OptionKind::kInteger,
       .default_text = "5",
       .min = 1,
       .max = kInt32Max},
      {.name = "maxmemory-eviction-tenacity",
       .kind = OptionKind::kInteger,
       .default_text = "10",
       .max = 100},
      {.name = "active-expire-effort",
       .kind = OptionKind::kInteger,
       .default_text = "1",
       .min = 1,
       .max = 10},
      {.name = "lfu-log-factor",
       .kind = OptionKind::kInteger,
       .default_text = "10",
       .max = kInt32Max},
      {.name = "lfu-decay-time",
       .kind = OptionKind::kInteger,
       .default_text = "1",
       .max = kInt32Max},
      {.name = "replica-ignore-maxmemory",
       .aliases = {"slave-ignore-maxmemory"},
       .kind = OptionKind::kBool,
       .default_text = "yes"},
      {.name = "maxmemory-clients",
       .kind = OptionKind::kString,
       .default_text = "0",
       .parser = parse_memory_or_percent},
      {.name = "filter-huge-pages",
       .kind = OptionKind::kEnum,
       .default_text = "auto",
       .choices = {"auto", "no"}},
  };
}

}  // namespace server
