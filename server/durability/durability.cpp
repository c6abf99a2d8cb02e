// SPDX-License-Identifier: MIT
#include "server/durability/durability.h"

#include <fmt/format.h>

#include <utility>

#include "core/clock.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/aof/batch_lines.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/server_state.h"
#include "server/base/process/tick_thread.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/directory_lock.h"
#include "server/durability/durability_parts.h"
#include "server/durability/loading/data_loader.h"
#include "server/durability/loading/data_replacer.h"
#include "server/durability/loading/load_figures.h"
#include "server/durability/loading/log_switch.h"
#include "server/durability/loading/recovery.h"
#include "server/durability/log/append_log.h"
#include "server/durability/log/log_files.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"

namespace server {
namespace {

SaveMachine machine_of(const DurabilityParts& parts, const DirectoryLock& lock) {
  SaveMachine machine = parts.machine;
  machine.closed_last = [&lock] { return lock.descriptor(); };
  return machine;
}

}  // namespace

// Owns the parts of Durability, in the order of their construction.
struct Durability::Members {
  explicit Members(const Parts& all_parts)
      : parts(all_parts),
        writer(parts),
        append_log(parts.config, parts.clock, parts.journal, parts.files, parts.state.availability,
                   parts.log_listener),
        saves(parts, writer, append_log, machine_of(parts, directory_lock)),
        log_switch(parts, writer, append_log, saves, thread),
        loader(parts, writer, append_log, saves),
        replacer{parts, writer, log_switch, loader, saves, parts.commands} {}

  const Parts parts;
  DirectoryLock directory_lock;
  DataWriter writer;
  AppendLog append_log;
  Saves saves;
  TickThread thread;
  LogSwitch log_switch;
  DataLoader loader;
  DataReplacer replacer;
};

Durability::Durability(const Parts& parts)
    : members_(std::make_unique<Members>(parts)),
      availability(parts.state.availability),
      append_log(members_->append_log),
      saves(members_->saves),
      loader(members_->loader),
      log_switch(members_->log_switch) {}

Durability::~Durability() {
  stop();
}

double Durability::loaded_share() const {
  return availability.has(Availability::kLoading) ? loader.figures().share() : -1;
}

void Durability::set_stream(StreamPosition* stream) {
  members_->writer.set_stream(stream);
}

bool Durability::log_is_on() const {
  return append_log.is_open();
}

const persistence::AofWriter& Durability::log_writer() const {
  return append_log.writer();
}

uint64_t Durability::log_end() const {
  return members_->parts.journal.end_offset();
}

uint64_t Durability::log_memory_bytes() const {
  return log_writer().memory_bytes();
}

std::optional<uint64_t> Durability::log_synced_offset() const {
  const persistence::AofWriter& log = log_writer();
  if (!log.is_open() || log.needs_base()) return std::nullopt;
  return log.synced_offset();
}

bool Durability::log_holds_everything() const {
  const auto synced = log_synced_offset();
  return synced && *synced >= log_end();
}

core::Result<> Durability::replace_data(const Replacement& replacement) {
  return members_->replacer.replace(replacement);
}

core::Result<> Durability::prepare() {
  Members& members = *members_;
  if (auto locked = members.directory_lock.take(members.parts.lock_patience); !locked)
    return locked;
  availability.begin(Availability::kLoading);
  Config& config = members.parts.config;
  config.on_change(OptionId::kAppendOnly, [&members, &config]() -> core::Result<> {
    members.log_switch.want(config.flag(OptionId::kAppendOnly));
    return {};
  });
  config.on_change(OptionId::kDir, [&members, &config] {
    return members.log_switch.change_directory(
        [&] { return members.directory_lock.move_to(config.directory()); });
  });
  config.follow(OptionId::kAofTimestampEnabled, [&members, &config] {
    persistence::AofWriter& writer = members.append_log.files().writer();
    writer.lines().set_timestamps(config.flag(OptionId::kAofTimestampEnabled));
  });
  return {};
}

core::Result<> Durability::recover(ReplayerFactory make_replayer) {
  auto recovered = loader.recover(std::move(make_replayer));
  if (!recovered) return recovered.error();
  return log_switch.open_recovered(std::move(*recovered));
}

void Durability::start() {
  append_log.start();
  members_->thread.start([this] {
    tick();
    return log_switch.is_awaited() ? TickThread::kUrgent : TickThread::kUsual;
  });
}

void Durability::stop() {
  members_->thread.stop();
  append_log.stop();
}

void Durability::tick() {
  saves.poll();
  saves.rewrites.start_if_requested();
  log_switch.follow();
  saves.start_what_is_due();
}

core::Result<SaveStart> Durability::request_rewrite() {
  auto started = saves.rewrites.request();
  members_->thread.wake();
  return started;
}

core::Result<> Durability::prepare_end(FinalSave save) {
  SaveSlot& slot = saves.slot;
  slot.refuse_children(true);
  // Without its first base the log restores nothing. A child process that writes this base is not
  // stopped, because writing the base again would take longer than waiting for the child process.
  const auto writes_first_base = [&] {
    return slot.task() == SaveTask::kRewrite && append_log.writer().needs_base();
  };
  if (slot.has_child()) {
    if (writes_first_base()) {
      log_notice("The append log's first base is being written. Waiting for it");
    } else if (slot.task() == SaveTask::kTransfer) {
      // The transfer of a snapshot is stopped, because replicas will request a snapshot again.
      log_notice("A snapshot for replicas is on its way. Ending it");
    } else {
      log_warning("There is a child saving. Killing it!");
    }
  }
  // The save slot stays claimed, so that no further save begins.
  const auto is_over = [this] { return loader.is_cancelled(); };
  if (!saves.claim_from_child(writes_first_base, is_over)) return {};
  auto ready = log_switch.complete();
  if (ready) ready = append_log.flush();
  if (ready && save != FinalSave::kNone) {
    ready = saves.snapshots.save_claimed(Locking::kTake);
    if (!ready && save == FinalSave::kBySavePoints && log_holds_everything()) {
      log_warning(
          "Ending without the snapshot of the save points: the append log holds everything");
      ready = core::Result<>();
    }
  }
  // As in Redis, NOSAVE does not bring back keys that FLUSHALL has deleted. A failure is logged.
  if (ready && save == FinalSave::kNone && saves.snapshots.owes_flush() && !log_holds_everything())
    (void)saves.snapshots.save_claimed(Locking::kTake);
  if (!ready) slot.release();
  return ready;
}

core::Result<> Durability::finish() {
  stop();
  auto flushed = append_log.flush();
  if (flushed) return {};
  return core::Error{fmt::format("{} bytes of the append log are not on the disk: {}",
                                 log_end() - log_writer().synced_offset(),
                                 core::without_code(flushed.error().message))};
}

}  // namespace server
