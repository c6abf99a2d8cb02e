// SPDX-License-Identifier: MIT
//
// The rows of bind-source-addr, of the options for SIGINT and SIGTERM, and of the options for
// tests. Options for tests make saving and loading slow, or watch the I/O threads.
#include "server/base/config/option_rows.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {
namespace {

using namespace rows;

Option shutdown_option(std::string_view name) {
  return list(name, {.default_text = "default",
                     .choices = {"default", "save", "nosave", "now", "force"},
                     .may_be_bare = true,
                     .parser = parse_shutdown_words});
}

// Returns the row of an option that delays saving or loading, by microseconds per key. A negative
// value is a number of keys per microsecond of delay.
Option delay_option(std::string_view name) {
  return integer(name, "0", kInt32Min, kInt32Max, {.hidden = true});
}

}  // namespace

std::vector<Option> test_options() {
  return {
      shutdown_option("shutdown-on-sigint"),
      shutdown_option("shutdown-on-sigterm"),
      text("bind-source-addr"),
      delay_option("rdb-key-save-delay"),
      delay_option("key-load-delay"),
      integer("watchdog-period", "0", 0, kInt32Max, {.hidden = true}),
  };
}

}  // namespace server
