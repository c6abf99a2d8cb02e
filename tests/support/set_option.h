// SPDX-License-Identifier: MIT
//
// set_option: sets an option of a test's configuration, even if clients may not set it.
//
// Thread safety: any thread may call the function.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "server/base/config/config.h"
#include "server/base/config/option_table.h"

namespace server {

inline void set_option(Config& config, OptionId id, const std::string& value) {
  const auto& row = option_table()[static_cast<size_t>(id)];
  if (row.mutability == Mutability::kImmutable) return config.replace(id, value);
  if (row.mutability == Mutability::kWithHook) {
    // If an option has a hook, Config::set() rejects a change until a callback is registered.
    config.on_change(id, []() -> core::Result<> { return {}; });
  }
  const std::array pairs{NamedValue{std::string(row.name), value}};
  const auto done = config.set(pairs);
  EXPECT_TRUE(done) << done.error().message;
}

}  // namespace server
