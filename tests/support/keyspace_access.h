// SPDX-License-Identifier: MIT
//
// Creates keys directly in the keyspace, so that the tests of one command family do not depend on
// other commands.
//
// Thread safety: belongs to one thread; takes no locks.
#pragma once

#include <string_view>
#include <utility>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/keyspace.h"
#include "core/memory/memory_budget.h"

namespace server {

// Creates a small Bloom filter in database 0, as a key that is not a string.
inline void put_filter(core::keyspace::Keyspace& keyspace, std::string_view name) {
  const core::UnlimitedMemory budget;
  core::bloom::FilterParameters parameters;
  parameters.capacity = 100;
  auto filter = core::bloom::ScalableFilter::create(parameters, budget);
  keyspace.insert(0, keyspace.ref(name)).set_filter(std::move(*filter));
}

}  // namespace server
