// SPDX-License-Identifier: MIT
#include "server/durability/saves/saves.h"

#include <unistd.h>

#include <mutex>
#include <utility>

#include "server/durability/data/data_writer.h"
#include "server/durability/log/append_log.h"

namespace server {

Saves::Saves(const DataParts& parts, const DataWriter& writer, AppendLog& log,
             SaveSlot::Machine machine)
    : slot_(parts, log, std::move(machine)),
      snapshots_(parts, writer, slot_),
      rewrites_(parts, writer, slot_, log),
      transfers_(writer, slot_) {}

void Saves::poll() {
  const std::scoped_lock one_at_a_time(poll_mutex_);
  const auto end = slot_.take_ended();
  if (!end) return;
  switch (slot_.task()) {
    case SaveTask::kTransfer:
      return transfers_.finish(*end);
    case SaveTask::kSave:
      snapshots_.finish(*end);
      break;
    case SaveTask::kRewrite:
      rewrites_.finish(*end);
      break;
    case SaveTask::kNone:
      break;
  }
  slot_.release();
}

void Saves::start_what_is_due() {
  if (slot_.task() != SaveTask::kNone || slot_.refuses_children()) return;
  if (!rewrites_.start_if_due()) snapshots_.start_if_due();
}

bool Saves::claim_from_child(const std::function<bool()>& spares,
                             const std::function<bool()>& is_over) {
  constexpr useconds_t kPauseUs = 1000;
  while (!slot_.claim(SaveTask::kSave)) {
    if (is_over()) return false;
    if (!spares()) slot_.kill_child();
    poll();
    ::usleep(kPauseUs);
  }
  return true;
}

}  // namespace server
