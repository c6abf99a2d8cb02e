// SPDX-License-Identifier: MIT
//
// WindowRotator: on a leader, rotates time windows of filters that no client writes to. On a
// replica it only forgets the names of keys that no longer hold a filter with a time window.
//
// Invariants: the work of a tick is bounded. A tick checks only filters whose next rotation may be
// due. No window rotates while data are being loaded, writes are paused or another server leads.
// While no filter has a time window, a tick only reads one atomic counter.
// Thread safety: belongs to one thread. Its members lock stripes, so the caller must not hold the
// lock of a stripe.
#pragma once

#include <functional>
#include <string_view>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "core/keyspace/window_schedule.h"
#include "core/memory/memory_budget.h"
#include "persistence/journal.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/pause_gate.h"

namespace server {

class WindowRotator {
 public:
  struct Parts {
    const core::Clock& clock;
    core::keyspace::Keyspace& keyspace;
    core::keyspace::Reclaimer& reclaimer;
    persistence::Journal& journal;
    const ServerState& state;
    const PauseGate& pause;
    const core::MemoryBudget& memory;
    // Called for each rotation under the key's lock, after watchers were notified. An empty
    // function is not called.
    std::function<void(unsigned database, std::string_view key)> on_rotation{};
  };
  explicit WindowRotator(const Parts& parts, core::keyspace::WindowSchedule& schedule =
                                                 core::keyspace::WindowSchedule::of_process())
      : parts_(parts), schedule_(schedule) {}

  // Rotates the windows that are due. Must be called several times a second.
  void tick();

 private:
  void look_at(core::keyspace::WindowSchedule::Name name);

  const Parts parts_;
  core::keyspace::WindowSchedule& schedule_;
  bool was_leader_ = true;
};

}  // namespace server
