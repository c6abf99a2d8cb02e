// SPDX-License-Identifier: MIT
//
// ReplicaFixture: a replica with the thread of its link, and a leader that the test simulates.
//
//   begin_stream(kEmptySnapshot);
//   played_.say(command({"SET", "a", "1"}));
//   await_applied(size);
//
// The link and the clients use a simulated clock. So periodic ACKs and timeouts occur only after
// advance_ms().
// Thread safety: only the test's thread may call the members; the link runs on a thread of its own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/metrics/statistics.h"
#include "server/dispatch/command_replayer.h"
#include "server/replication/replica_controller.h"
#include "server/session/session.h"
#include "tests/support/captured_log.h"
#include "tests/support/command_test.h"
#include "tests/support/memory_streams.h"
#include "tests/support/played_leader.h"
#include "tests/support/stream_bytes.h"
#include "tests/support/virtual_disk.h"
#include "tests/support/waiting.h"

namespace server {

class ReplicaFixture : public CommandTest {
 protected:
  ReplicaFixture() {
    replica_controller_.start([this](CommandOrigin origin) {
      return std::make_unique<CommandReplayer>(services_, origin, &statistics_.stream());
    });
  }
  ~ReplicaFixture() override { replica_controller_.stop(); }

  void ask_to_follow(const PlayedLeader& leader) {
    ASSERT_EQ(run({"REPLICAOF", "127.0.0.1", std::to_string(leader.port())}), kOk);
  }
  // Makes the replica connect to the same leader again at once, instead of pausing first. Must be
  // called after the end of a link.
  void retry_now() {
    await([this] {
      return played_.is_called() ||
             replica_controller_.figures().state == ReplicaLinkState::kConnect;
    });
    run({"REPLICAOF", "127.0.0.1", std::to_string(played_.port())});
  }
  // Makes the replica connect to the simulated leader, which sends `snapshot` in a full sync.
  // Returns when the replica has loaded the snapshot and waits for the stream.
  void begin_stream(std::string_view snapshot, uint64_t offset = 0, std::string_view mark = "") {
    ASSERT_NO_FATAL_FAILURE(ask_to_follow(played_));
    ASSERT_NE(played_.await_psync(), "");
    played_.full_resync(snapshot, offset, mark);
    await_link();
  }
  void await_link() {
    await([this] { return replica_controller_.figures().state == ReplicaLinkState::kConnected; });
  }
  // Waits until the replica has applied the stream up to `offset`.
  void await_applied(uint64_t offset) {
    played_.say(command({"REPLCONF", "GETACK", "*"}));
    EXPECT_TRUE(played_.await_ack(offset)) << fmt::format("{}", fmt::join(played_.acks, " "));
  }
  static void await(const std::function<bool()>& condition) {
    ASSERT_TRUE(support::wait_until(condition));
  }
  // Returns the value of a field of INFO; "(none)" if the field is missing.
  std::string info(const std::string& section, const std::string& field) {
    const std::string text = "\r\n" + run({"INFO", section});
    const size_t at = text.find("\r\n" + field + ":");
    if (at == std::string::npos) return "(none)";
    const size_t begin = at + field.size() + 3;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
  std::string link_status() { return info("replication", "master_link_status"); }
  // Returns a snapshot with one key.
  static std::string one_key_snapshot() {
    core::keyspace::Keyspace keyspace(1, 1);
    const auto key = keyspace.ref("sent");
    EXPECT_TRUE(keyspace.insert(0, key).set_string(std::string(500, 'v')));
    std::string bytes;
    persistence::StringSink sink(bytes);
    EXPECT_TRUE(persistence::write_rdb(sink, keyspace, {}));
    return bytes;
  }
  bool has_temporary_files() {
    const auto names = disk_.list(".");
    EXPECT_TRUE(names) << names.error().message;
    return std::any_of(names->begin(), names->end(),
                       [](const std::string& name) { return name.starts_with("temp-"); });
  }
  // Returns a snapshot of a Bloomery leader, whose stream contains effects instead of verbatim
  // commands.
  static std::string own_snapshot(uint64_t offset = 0) {
    core::keyspace::Keyspace keyspace(1, 1);
    persistence::RdbWriteOptions options;
    options.replication = {0, PlayedLeader::kId, static_cast<int64_t>(offset), false};
    std::string bytes;
    persistence::StringSink sink(bytes);
    EXPECT_TRUE(persistence::write_rdb(sink, keyspace, options));
    return bytes;
  }
  // Ends the link and returns the log messages.
  std::string log() {
    replica_controller_.stop();
    return log_.text();
  }

  // A snapshot with no key and no checksum.
  static inline const std::string kEmptySnapshot = "REDIS0010\xff" + std::string(8, '\0');

  CapturedLog log_;
  PlayedLeader played_;
};

}  // namespace server
