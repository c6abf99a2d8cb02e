// SPDX-License-Identifier: MIT
//
// KeyTransfer: sends keys to another server by RESTORE, on a separate thread.
//
// Invariants: each step (connecting, sending or receiving some bytes) takes at most `timeout`. Only
// the lookup of the host's name may take longer. The thread uses no data of its owner, so the owner
// never waits for the thread.
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
  // Arguments of AUTH for the target; empty if no login is needed.
  std::vector<std::string> login{};
  std::chrono::milliseconds timeout{1000};
};

struct DumpedKey {
  std::string name{};
  int64_t ttl_ms = 0;  // remaining time until the key expires; 0 if it has no expiry
  std::string payload{};
  bool replaces = false;  // true if a key of this name on the target may be replaced
};

class KeyTransfer {
 public:
  struct Outcome {
    std::vector<bool> stored;  // for each key, true if the target has stored it
    std::string error;         // the first error, as a reply; empty if there was none
  };

  // Starts the transfer. Calls `wake` when the transfer has ended, unless this object was
  // destroyed. If no thread can be started, the transfer ends with an error.
  KeyTransfer(TransferTarget target, std::vector<DumpedKey> keys, std::function<void()> wake);
  // Abandons the transfer: no further key is sent, but the target may have stored some keys.
  ~KeyTransfer();
  KeyTransfer(const KeyTransfer&) = delete;
  KeyTransfer& operator=(const KeyTransfer&) = delete;

  bool has_ended() const;
  // Returns the result. REQUIRES: the transfer has ended.
  const Outcome& outcome() const;

 private:
  struct Job;

  const std::shared_ptr<Job> job_;
};

}  // namespace server
