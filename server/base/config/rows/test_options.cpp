// SPDX-License-Identifier: MIT
//
// The rows of bind-source-addr, of the options for SIGINT and SIGTERM, and of the options for
// tests. Options for tests make saving and loading slow, or watch the I/O threads.
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {
namespace {

Option shutdown_option(std::string_view name) {
  return {.name = name,
          .kind = OptionKind::kList,
          .default_text = "default",
          .choices = {"default", "save", "nosave", "now", "force"},
          .multi_argument = true,
          .may_be_bare = true,
          .parser = parse_shutdown_words};
}

// Returns the row of an option that delays saving or loading, by microseconds per key. A negative
// value is a number of keys per microsecond of delay.
Option delay_option(std::string_view name) {
  return {.name = name,
          .kind = OptionKind::kInteger,
          .default_text = "0",
          .min = kInt32Min,
          .max = kInt32Max,
          .hidden = true};
}

}  // namespace

std::vector<Option> test_options() {
  return {
      shutdown_option("shutdown-on-sigint"),
      shutdown_option("shutdown-on-sigterm"),
      {.name = "bind-source-addr", .kind = OptionKind::kString},
      delay_option("rdb-key-save-delay"),
      delay_option("key-load-delay"),
      {.name = "watchdog-period",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = kInt32Max,
       .hidden = true},
  };
}

}  // namespace server
