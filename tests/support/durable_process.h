// SPDX-License-Identifier: MIT
//
// Process: one server process with its keyspace and journal, and with its files on a simulated
// disk. A test chooses the function that starts a child process for a save. The child processes of
// start_slow_child() and start_failing_child() save nothing. The only write command is APPEND,
// because its result shows whether a replay has applied a command twice.
//
// Thread safety: one thread at a time may call the members. Any thread may use the Durability.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "tests/support/manual_clock.h"
#include "tests/support/snapshots.h"
#include "tests/support/virtual_disk.h"

namespace durable_process {

using server::CommandOrigin;
using server::SaveChild;

class AppendReplayer final : public server::Replayer {
 public:
  explicit AppendReplayer(core::keyspace::Keyspace& keyspace) : keyspace_(keyspace) {}
  std::string_view execute(persistence::Words words) override {
    if (words[0] != "APPEND") return "+OK\r\n";
    const auto key = keyspace_.ref(words[1]);
    const auto lock = keyspace_.lock_exclusive(key);
    auto* entry = keyspace_.find(0, key, 0);
    core::keyspace::IntegerText scratch;
    std::string text(entry == nullptr ? std::string_view() : entry->text(scratch));
    text += words[2];
    EXPECT_TRUE((entry == nullptr ? keyspace_.insert(0, key) : *entry).set_string(text));
    return "+OK\r\n";
  }

 private:
  core::keyspace::Keyspace& keyspace_;
};

// Starts a child process that saves nothing. It waits until it is killed or its parent process
// ends.
inline core::Result<std::unique_ptr<SaveChild>> start_slow_child(
    const core::Clock& clock, const SaveChild::Work& /*work*/,
    server::ChildDescriptors descriptors) {
  const auto stay = [](SaveChild::Figures&) -> core::Result<> {
    ::pause();
    return core::Error{"ERR it was not stopped"};
  };
  return SaveChild::start(clock, stay, std::move(descriptors));
}

inline core::Result<std::unique_ptr<SaveChild>> start_failing_child(
    const core::Clock& clock, const SaveChild::Work& /*work*/,
    server::ChildDescriptors descriptors) {
  const auto fail = [](SaveChild::Figures&) -> core::Result<> { return core::Error{"ERR no"}; };
  return SaveChild::start(clock, fail, std::move(descriptors));
}

struct Process {
  Process(virtual_disk::VirtualDisk& disk, std::string_view has_log, SaveChild::Starter start_child)
      : durability({{config, clock, keyspace, journal, disk, state},
                    {std::move(start_child)},
                    nullptr,
                    nullptr,
                    std::chrono::milliseconds::zero()}) {
    const std::array<const char*, 5> options = {"server", "--appendonly", has_log.data(), "--save",
                                                ""};
    EXPECT_TRUE(config.load(static_cast<int>(options.size()), options.data()));
    const auto recovered = durability.recover(
        [this](CommandOrigin) { return std::make_unique<AppendReplayer>(keyspace); });
    EXPECT_TRUE(recovered) << recovered.error().message;
    durability.availability.end(server::Availability::kLoading);
  }
  void append(std::string_view name, std::string_view value) {
    AppendReplayer(keyspace).execute(std::array<std::string_view, 3>{"APPEND", name, value});
    journal.append(0, std::array<std::string_view, 3>{"APPEND", name, value});
  }
  snapshots::Contents contents() const { return snapshots::contents(keyspace); }

  server::Config config;
  server::ManualClock clock;
  core::keyspace::Keyspace keyspace{2, 1};
  persistence::Journal journal;
  server::ServerState state;
  server::Durability durability;
};

}  // namespace durable_process
