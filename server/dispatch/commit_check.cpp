// SPDX-License-Identifier: MIT
#include "server/dispatch/commit_check.h"

#ifndef NDEBUG
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"

namespace server {
namespace {

class Hash {
 public:
  void add_number(uint64_t number) { sum_ = XXH3_64bits_withSeed(&number, sizeof number, sum_); }
  void add_bytes(const void* bytes, size_t size) { sum_ = XXH3_64bits_withSeed(bytes, size, sum_); }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = 1;
};

}  // namespace

// Inside EXEC the journal collects commands in a Group until EXEC ends. append_count() counts each
// command when it is added to the Group, so the check also works inside EXEC.
CommitCheck::CommitCheck(const Context& ctx)
    : ctx_(ctx),
      command_(*ctx.command),
      args_(ctx.args),
      database_(ctx.database()),
      compares_keys_(ctx.session.origin == CommandOrigin::kClient && command_.has(kWrite) &&
                     ctx.is_journal_active()) {
  if (!compares_keys_) return;
  appends_ = ctx.environment.journal.append_count();
  before_ = fingerprints();
}

bool CommitCheck::is_committed() const {
  if (!ctx_.is_journal_active()) return true;
  return !ctx_.commits.has_unjournalled_marks() && (!compares_keys_ || has_committed_changes());
}

bool CommitCheck::has_committed_changes() const {
  const Fingerprints after = fingerprints();
  if (after == before_) return true;
  // Other code has also appended to the journal: another thread, or the rotation of a window. The
  // change may belong to that code.
  const uint64_t appended = ctx_.environment.journal.append_count() - appends_;
  if (appended > ctx_.commits.journalled()) return true;
  bool has_all = true;
  size_t count = 0;
  for_each_key(*command_.row, args_, [&](size_t index, auto) {
    if (count == kKeysMax) return;
    const bool has_changed = after[count] != before_[count];
    if (has_changed && !ctx_.commits.has_marked(args_[index])) has_all = false;
    ++count;
  });
  return has_all;
}

CommitCheck::Fingerprints CommitCheck::fingerprints() const {
  Fingerprints found{};
  size_t count = 0;
  for_each_key(*command_.row, args_, [&](size_t index, auto) {
    if (count == kKeysMax) return;
    const KeyRef key = ctx_.keyspace().ref(args_[index]);
    const auto lock = ctx_.in_exec ? StripeLock{} : ctx_.keyspace().lock_shared(key);
    found[count++] = fingerprint(key);
  });
  return found;
}

uint64_t CommitCheck::fingerprint(const KeyRef& key) const {
  const Entry* const entry = ctx_.keyspace().find(database_, key, ctx_.expiry_now_ms);
  if (entry == nullptr) return 0;
  Hash hash;
  hash.add_number(static_cast<uint64_t>(entry->expires_at_ms()));
  if (!entry->is_filter()) {
    core::keyspace::IntegerText scratch;
    const std::string_view text = entry->text(scratch);
    hash.add_number(text.size());
    if (text.size() <= kArrayBytesMax) hash.add_bytes(text.data(), text.size());
    return hash.sum();
  }
  const core::bloom::ScalableFilter& filter = entry->filter();
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    hash.add_number(filter.layer_info(i).item_count);
    const auto bytes = filter.layer_bits(i).bytes();
    if (bytes.size() <= kArrayBytesMax) hash.add_bytes(bytes.data(), bytes.size());
  }
  if (filter.window() != nullptr) {
    const core::bloom::WindowRotation newest = filter.window()->newest();
    hash.add_number(newest.ordinal);
    hash.add_number(static_cast<uint64_t>(newest.start));
  }
  return hash.sum();
}

void run_handler(Context& ctx) {
  const RegisteredCommand& command = *ctx.command;
  const CommitCheck check(ctx);
  command.row->handler(ctx);
  if (check.is_committed()) return;
  fmt::print(stderr, "{} changed a key and did not commit the change\n", command.full_name);
  std::abort();
}

}  // namespace server
#endif
