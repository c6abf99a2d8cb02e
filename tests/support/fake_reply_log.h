// SPDX-License-Identifier: MIT
//
// FakeReplyLog: simulates the append log that replies wait for. The test sets its offsets.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <string>

#include "server/durability/log/reply_log.h"

struct FakeReplyLog final : server::ReplyLog {
  uint64_t offset_of_replies(bool has_written) const override {
    return is_open && (has_written || !is_failing) ? end : 0;
  }
  bool is_safe(uint64_t offset) const override { return offset <= safe; }
  bool syncs_before_replies() const override { return is_synced; }
  bool fails() const override { return is_failing; }
  std::string failure_text() const override { return "IOERR full"; }
  void write() override {
    ++writes;
    if (writes_at_once) safe = end;
  }
  void commit(size_t clients) override {
    ++commits;
    committed_for = clients;
    if (on_commit) on_commit();
  }

  bool is_open = true;
  bool is_synced = false;
  bool is_failing = false;
  bool writes_at_once = false;
  uint64_t end = 0;
  uint64_t safe = 0;
  int writes = 0;
  int commits = 0;
  size_t committed_for = 0;
  std::function<void()> on_commit;
};
