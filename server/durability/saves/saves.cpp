// SPDX-License-Identifier: MIT
#include "server/durability/saves/saves.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <utility>

#include "server/base/metrics/work_report.h"
#include "server/base/process/ordered_mutex.h"
#include "server/durability/data/data_parts.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/snapshot_saver.h"
#include "server/durability/saves/transfer_saver.h"

namespace server {
namespace {

std::string name_of(SaveTask task) {
  switch (task) {
    case SaveTask::kRewrite:
      return "Rewriting the append log";
    case SaveTask::kTransfer:
      return "Saving for replicas";
    case SaveTask::kSave:
    case SaveTask::kNone:
      break;
  }
  return "Background save";
}

}  // namespace

// Owns the parts of Saves, in the order of their construction.
struct Saves::Members {
  Members(const DataParts& parts, const DataWriter& writer, AppendLog& log,
          const SaveMachine& machine)
      : clock(parts.clock),
        slot(parts, log, machine),
        snapshots(parts, writer, slot),
        rewrites(parts, writer, slot, log),
        transfers(writer, slot) {}

  const core::Clock& clock;
  SaveSlot slot;
  SnapshotSaver snapshots;
  BaseRewriter rewrites;
  TransferSaver transfers;
  // This mutex is held while the end of a child is handled.
  OrderedMutex poll_mutex{LockRank::kChildEnd};
  std::unique_ptr<WorkReport> report;  // progress of the running child; guarded by poll_mutex
};

Saves::Saves(const DataParts& parts, const DataWriter& writer, AppendLog& log,
             const SaveMachine& machine)
    : members_(std::make_unique<Members>(parts, writer, log, machine)) {}

Saves::~Saves() = default;

SaveSlot& Saves::slot() {
  return members_->slot;
}
const SaveSlot& Saves::slot() const {
  return members_->slot;
}
SnapshotSaver& Saves::snapshots() {
  return members_->snapshots;
}
const SnapshotSaver& Saves::snapshots() const {
  return members_->snapshots;
}
BaseRewriter& Saves::rewrites() {
  return members_->rewrites;
}
const BaseRewriter& Saves::rewrites() const {
  return members_->rewrites;
}
TransferSaver& Saves::transfers() {
  return members_->transfers;
}

void Saves::poll() {
  const std::scoped_lock one_at_a_time(members_->poll_mutex);
  const auto end = members_->slot.take_ended();
  if (!end) return report();
  members_->report.reset();
  switch (members_->slot.task()) {
    case SaveTask::kTransfer:
      return members_->transfers.finish(*end);
    case SaveTask::kSave:
      members_->snapshots.finish(*end);
      break;
    case SaveTask::kRewrite:
      members_->rewrites.finish(*end);
      break;
    case SaveTask::kNone:
      break;
  }
  members_->slot.release();
}

void Saves::report() {
  const SaveProgress progress = members_->slot.progress();
  if (progress.running_us < 0) return;
  if (members_->report == nullptr)
    members_->report =
        std::make_unique<WorkReport>(name_of(members_->slot.task()), members_->clock);
  members_->report->show(progress.share(), [&progress] {
    return fmt::format("{} of {} keys, {} bytes written", progress.written_keys,
                       progress.total_keys, progress.written_bytes);
  });
}

void Saves::start_what_is_due() {
  if (members_->slot.task() != SaveTask::kNone || members_->slot.refuses_children()) return;
  if (!members_->rewrites.start_if_due()) members_->snapshots.start_if_due();
}

bool Saves::claim_from_child(const std::function<bool()>& spares,
                             const std::function<bool()>& is_over) {
  constexpr useconds_t kPauseUs = 1000;
  while (!members_->slot.claim(SaveTask::kSave)) {
    if (is_over()) return false;
    if (!spares()) members_->slot.kill_child();
    poll();
    ::usleep(kPauseUs);
  }
  return true;
}

}  // namespace server
