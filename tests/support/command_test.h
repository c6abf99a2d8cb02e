// SPDX-License-Identifier: MIT
//
// CommandTest: a fixture that sends commands to handlers, without a socket.
//
//   EXPECT_EQ(run({"SET", "a", "1"}), "+OK\r\n");
//
// Time does not pass until advance_ms(). Each test has its own keyspace. `other_` is a second
// client of the same server.
//
// The server's types are forward-declared, because most tests need none of them. A test includes
// the headers of the parts that it uses.
// Thread safety: belongs to one thread.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/commands/services.h"
#include "server/dispatch/dispatcher.h"
#include "tests/support/manual_clock.h"

namespace virtual_disk {
class VirtualDisk;
}

namespace server {

struct TestThreads;

class CommandTest : public ::testing::Test {
 private:
  struct Server;
  const std::unique_ptr<Server> server_;  // the objects that the members below refer to

 protected:
  // A client: a session and the dispatcher that runs its commands.
  struct TestClient {
    explicit TestClient(CommandTest& test);
    ~TestClient();
    TestClient(const TestClient&) = delete;
    TestClient& operator=(const TestClient&) = delete;

    // Runs a command and returns the bytes of its reply.
    std::string run(const std::vector<std::string>& command);
    // Runs the commands as one pipeline, like a connection that has read all of them at once.
    std::vector<std::string> run_pipeline(
        const std::vector<std::vector<std::string_view>>& commands);
    // Returns the reply that a blocked client has received, or "" if there is none yet.
    std::string try_answer();

    const std::unique_ptr<Session> session;
    Dispatcher dispatcher;
    CommandTest& owner;
    CommandResult last_result;
  };

  // List of renamed commands, as pairs of the old and the new name.
  using Renames = std::vector<std::pair<std::string, std::string>>;
  explicit CommandTest(const Renames& renames);
  CommandTest();
  ~CommandTest() override;

  std::string run(const std::vector<std::string>& command);
  std::vector<std::string> run_pipeline(const std::vector<std::vector<std::string_view>>& commands);
  std::string run_as_other(const std::vector<std::string>& command);
  void advance_ms(int64_t ms) { clock_.now_ms += ms; }

  // The functions below encode a reply as RESP bytes, to keep expectations short.
  static std::string bulk(std::string_view text);
  static std::string integer(int64_t value);
  static std::string error(std::string_view text);
  static std::string array(const std::vector<std::string>& replies);
  static inline const std::string kOk = "+OK\r\n";
  static inline const std::string kNull = "$-1\r\n";
  static const std::string_view kWrongType;
  static const std::string_view kSyntaxError;
  static const std::string_view kNotAnInteger;
  static const std::string_view kNotAFloat;

  Config& config_;
  ManualClock& clock_;
  core::keyspace::Keyspace& keyspace_;
  core::keyspace::Reclaimer& reclaimer_;
  persistence::Journal& journal_;
  const Registry* const registry_;
  acl::Users& users_;
  cluster::ClusterState& cluster_;
  Clients& clients_;
  TestThreads& threads_;
  PubSub& pubsub_;
  Statistics& statistics_;
  MemoryMonitor& memory_;
  PauseGate& pause_;
  Gauges& gauges_;
  const ProcessFacts& facts_;
  ServerState& state_;
  KeyEvents& key_events_;
  Tracking& tracking_;
  Observer& observer_;
  virtual_disk::VirtualDisk& disk_;
  std::atomic<uint64_t>& free_bytes_;  // simulated free memory of the machine
  Durability& durability_;
  Replication& replication_;
  Leader& leader_;
  ReplicaController& replica_controller_;
  Shutdown& shutdown_;
  const int& shutdowns_requested_;
  Services& services_;
  std::unique_ptr<TestClient> client_;
  std::unique_ptr<TestClient> other_;
};

}  // namespace server
