// SPDX-License-Identifier: MIT
//
// The rows of the options on memory: maxmemory, the behaviour when used memory exceeds maxmemory,
// and huge pages.
#include "server/base/config/option_rows.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {

std::vector<Option> memory_options() {
  using namespace rows;
  return {
      bytes("maxmemory", "0"),
      choice("maxmemory-policy", "noeviction",
             {"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru",
              "allkeys-lfu", "allkeys-random", "noeviction"}),
      integer("maxmemory-samples", "5", 1, kInt32Max),
      integer("maxmemory-eviction-tenacity", "10", 0, 100),
      integer("active-expire-effort", "1", 1, 10),
      integer("lfu-log-factor", "10", 0, kInt32Max),
      integer("lfu-decay-time", "1", 0, kInt32Max),
      flag("replica-ignore-maxmemory", "yes", {.aliases = {"slave-ignore-maxmemory"}}),
      text("maxmemory-clients", {.default_text = "0", .parser = parse_memory_or_percent}),
      choice("filter-huge-pages", "auto", {"auto", "no"}),
  };
}

}  // namespace server
