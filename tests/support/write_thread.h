// SPDX-License-Identifier: MIT
//
// WriteThread: a WriteCaller for tests. It runs each task immediately, on the thread of the test.
//
// Thread safety: none.
#pragma once

#include <utility>

#include "server/admin/write_caller.h"
#include "server/base/metrics/statistics.h"
#include "server/net/loop/reply_gate.h"
#include "tests/support/fake_reply_log.h"

namespace server {

struct WriteThread {
  explicit WriteThread(Statistics& its_statistics) : statistics(its_statistics) {}

  admin::WriteCaller::Post post() {
    return [this](const admin::WriteCaller::Task& task) {
      task(gate, statistics.thread(0));
      gate.end_round();
    };
  }

  Statistics& statistics;
  FakeReplyLog log;
  net::ReplyGate gate{log, [](bool) {}};
};

}  // namespace server
