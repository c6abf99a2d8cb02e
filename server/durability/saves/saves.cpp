// SPDX-License-Identifier: MIT
#include "server/durability/saves/saves.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <string>

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
  if (task == SaveTask::kRewrite) return "Rewriting the append log";
  return task == SaveTask::kTransfer ? "Saving for replicas" : "Background save";
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
    : members_(std::make_unique<Members>(parts, writer, log, machine)),
      slot(members_->slot),
      snapshots(members_->snapshots),
      rewrites(members_->rewrites),
      transfers(members_->transfers) {}

Saves::~Saves() = default;

void Saves::poll() {
  const std::scoped_lock one_at_a_time(members_->poll_mutex);
  const auto end = slot.take_ended();
  if (!end) return report();
  members_->report.reset();
  const SaveTask task = slot.task();
  if (task == SaveTask::kTransfer) return transfers.finish(*end);
  if (task == SaveTask::kSave) snapshots.finish(*end);
  if (task == SaveTask::kRewrite) rewrites.finish(*end);
  slot.release();
}

void Saves::report() {
  const SaveProgress progress = slot.progress();
  if (progress.running_us < 0) return;
  if (members_->report == nullptr)
    members_->report = std::make_unique<WorkReport>(name_of(slot.task()), members_->clock);
  members_->report->show(progress.share(), [&progress] {
    return fmt::format("{} of {} keys, {} bytes written", progress.written_keys,
                       progress.total_keys, progress.written_bytes);
  });
}

void Saves::start_what_is_due() {
  if (snapshots.owes_flush() && !slot.refuses_children()) slot.kill_outdated_child();
  if (slot.task() != SaveTask::kNone || slot.refuses_children()) return;
  if (!rewrites.start_if_due()) snapshots.start_if_due();
}

bool Saves::claim_from_child(const std::function<bool()>& spares,
                             const std::function<bool()>& is_over) {
  constexpr useconds_t kPauseUs = 1000;
  while (!slot.claim(SaveTask::kSave)) {
    if (is_over()) return false;
    if (!spares()) slot.kill_child();
    poll();
    ::usleep(kPauseUs);
  }
  return true;
}

}  // namespace server
