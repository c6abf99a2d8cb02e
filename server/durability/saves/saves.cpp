// SPDX-License-Identifier: MIT
#include "server/durability/saves/saves.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <utility>

#include "server/durability/data/data_writer.h"
#include "server/durability/log/append_log.h"
#include "server/process/work/work_report.h"

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

Saves::Saves(const DataParts& parts, const DataWriter& writer, AppendLog& log,
             SaveSlot::Machine machine)
    : clock_(parts.clock),
      slot_(parts, log, std::move(machine)),
      snapshots_(parts, writer, slot_),
      rewrites_(parts, writer, slot_, log),
      transfers_(writer, slot_) {}

Saves::~Saves() = default;

void Saves::poll() {
  const std::scoped_lock one_at_a_time(poll_mutex_);
  const auto end = slot_.take_ended();
  if (!end) return report();
  report_.reset();
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

void Saves::report() {
  const SaveProgress progress = slot_.progress();
  if (progress.running_us < 0) return;
  if (report_ == nullptr) report_ = std::make_unique<WorkReport>(name_of(slot_.task()), clock_);
  report_->show(progress.share(), [&progress] {
    return fmt::format("{} of {} keys, {} bytes written", progress.written_keys,
                       progress.total_keys, progress.written_bytes);
  });
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
