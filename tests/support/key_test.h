// SPDX-License-Identifier: MIT
//
// KeyTest: CommandTest with keys created directly in the keyspace, so that the tests of one command
// family need no other family.
// Thread safety: belongs to one thread.
#pragma once

#include <memory>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/keyspace.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/upsert.h"

namespace server {

class KeyTest : public CommandTest {
 protected:
  core::keyspace::Entry& put(std::string_view name, std::string_view value) {
    const auto key = keyspace_.ref(name);
    const auto lock = keyspace_.lock_exclusive(key);
    core::keyspace::Entry& entry = core::keyspace::upsert(
        keyspace_, static_cast<unsigned>(client_->session->client->database), key, clock_.now_ms);
    EXPECT_TRUE(entry.set_string(value));
    entry.touch(static_cast<uint32_t>(clock_.now_ms / 1000));
    return entry;
  }
  // Creates a key with a filter that contains `item`.
  core::keyspace::Entry& put_filter(std::string_view name, std::string_view item) {
    const core::UnlimitedMemory budget;
    core::bloom::FilterParameters parameters;
    parameters.capacity = 100;
    auto filter = core::bloom::ScalableFilter::create(parameters, budget);
    EXPECT_TRUE(filter.has_value());
    (*filter)->add(item, budget);
    core::keyspace::Entry& entry = put(name, "");
    entry.set_filter(std::move(*filter));
    return entry;
  }
  // Returns the entry of a key, even if it has expired; null if there is no such key.
  core::keyspace::Entry* entry_of(std::string_view name, unsigned database = 0) {
    return keyspace_.find_any(database, keyspace_.ref(name));
  }
  std::string text_of(std::string_view name, unsigned database = 0) {
    core::keyspace::IntegerText scratch;
    const core::keyspace::Entry* entry = entry_of(name, database);
    return entry == nullptr ? "(none)" : std::string(entry->text(scratch));
  }
  // Makes a second client watch `key` in the database that this client has selected, and runs
  // `action`. Returns true if the second client's EXEC then fails.
  template <class Action>
  bool watcher_notices(const std::string& key, Action&& action) {
    run_as_other({"WATCH", key});
    action();
    run_as_other({"MULTI"});
    return run_as_other({"EXEC"}) == "*-1\r\n";
  }
};

}  // namespace server
