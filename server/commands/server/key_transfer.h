// SPDX-License-Identifier: MIT
//
// KeyTransfer: stores keys on another server by RESTORE, from a thread of its own.
//
// Invariants: a step (connecting, sending some bytes, receiving some) takes `timeout` at most, the
// lookup of the host's name excepted. The thread touches nothing of its owner, so that the owner
// never waits for it.
// Thread safety: an object belongs to one thread at a time. `wake` is called on the transfer's
// thread.
// Source: Redis' MIGRATE, https://redis.io/docs/latest/commands/migrate/.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace server {

struct TransferTarget {
  std::string host{};
  uint16_t port = 0;
  int64_t database = 0;
  std::vector<std::string> login{};  // the words of AUTH; empty for none
  std::chrono::milliseconds timeout{1000};
};

struct DumpedKey {
  std::string name{};
  int64_t ttl_ms = 0;  // 0 for none
  std::string payload{};
  bool replaces = false;  // a key that the target has under this name
};

class KeyTransfer {
 public:
  struct Outcome {
    std::vector<bool> stored;  // for each key, whether the target has it now
    std::string error;         // the first one, as a reply; empty for none
  };

  // Starts the transfer. `wake` is called when it has ended, unless this object has gone. If no
  // thread can be started, the transfer has ended with an error.
  KeyTransfer(TransferTarget target, std::vector<DumpedKey> keys, std::function<void()> wake);
  // Abandons the transfer: no further key is sent, but the target may have stored some.
  ~KeyTransfer();
  KeyTransfer(const KeyTransfer&) = delete;
  KeyTransfer& operator=(const KeyTransfer&) = delete;

  bool has_ended() const;
  // REQUIRES: it has ended.
  const Outcome& outcome() const;

 private:
  struct Job;

  const std::shared_ptr<Job> job_;
};

}  // namespace server
