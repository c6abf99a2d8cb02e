// SPDX-License-Identifier: MIT
#include "server/durability/durability.h"

#include <fmt/format.h>

#include <utility>

#include "core/clock.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/config/config.h"
#include "server/process/log.h"
#include "server/process/server_state.h"

namespace server {

Durability::Durability(const Parts& parts)
    : availability(parts.state.availability),
      parts_(parts),
      writer_(parts),
      append_log_(parts.config, parts.clock, parts.journal, parts.files, availability),
      saves_(parts, writer_, append_log_, parts.machine),
      log_switch_(parts, writer_, append_log_, saves_, thread_),
      loader_(parts, writer_, append_log_, saves_),
      replacer_(parts, writer_, log_switch_, loader_, saves_, parts.commands) {}

Durability::~Durability() {
  stop();
}

core::Result<> Durability::recover(ReplayerFactory make_replayer) {
  auto recovered = loader_.recover(std::move(make_replayer));
  if (!recovered) return recovered.error();
  return log_switch_.open_recovered(std::move(*recovered));
}

void Durability::start() {
  append_log_.start();
  thread_.start([this] {
    tick();
    return log_switch_.is_awaited() ? TickThread::kUrgent : TickThread::kUsual;
  });
}

void Durability::stop() {
  thread_.stop();
  append_log_.stop();
}

void Durability::tick() {
  saves_.poll();
  saves_.rewrites().start_if_requested();
  log_switch_.follow();
  saves_.start_what_is_due();
}

core::Result<SaveStart> Durability::request_rewrite() {
  auto started = saves_.rewrites().request();
  thread_.wake();
  return started;
}

core::Result<> Durability::prepare_end(bool saves) {
  SaveSlot& slot = saves_.slot();
  slot.refuse_children(true);
  // Its end is nearer than that of another one which would begin now.
  const auto writes_first_base = [&] {
    return slot.task() == SaveTask::kRewrite && append_log_.writer().needs_base();
  };
  if (slot.has_child()) {
    if (writes_first_base()) {
      log_notice("The append log's first base is being written. Waiting for it");
    } else if (slot.task() == SaveTask::kTransfer) {
      // Replicas will ask again; a save was ordered.
      log_notice("A snapshot for replicas is on its way. Ending it");
    } else {
      log_warning("There is a child saving. Killing it!");
    }
  }
  // The claim is kept: nothing that saves begins any more.
  const auto is_over = [this] { return loader_.is_cancelled(); };
  if (!saves_.claim_from_child(writes_first_base, is_over)) return {};
  auto ready = log_switch_.complete();
  if (ready) ready = append_log_.flush();
  if (ready && saves) ready = saves_.snapshots().save_claimed(Locking::kTake);
  if (!ready) slot.release();
  return ready;
}

core::Result<> Durability::finish() {
  stop();
  auto flushed = append_log_.flush();
  if (flushed) return {};
  return core::Error{fmt::format("{} bytes of the append log are not on the disk: {}",
                                 log_end() - log_writer().synced_offset(),
                                 core::without_code(flushed.error().message))};
}

}  // namespace server
