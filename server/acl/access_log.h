// SPDX-License-Identifier: MIT
//
// AccessLog: the latest failed logins and denied commands, for ACL LOG; and how many there were.
//
// Invariants: the newest entry comes first. The same event within a minute counts in one entry.
// Never longer than the limit was when the latest new event came.
// Thread safety: all members may be called from any thread.
// Source: https://redis.io/docs/latest/commands/acl-log/.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace server::acl {

// Why something was denied; the later one tells more, where several selectors differ.
enum class Reason : uint8_t { kCommand = 1, kKey, kLogin, kChannel };

struct Denied {
  Reason reason = Reason::kCommand;
  bool in_transaction = false;
  std::string object;  // the command, key or channel; of a login the command that tried it
  std::string user;
  std::string client;  // its line of CLIENT LIST
};

// What is kept of a name that a client chose, so that the log stays small.
inline constexpr size_t kLoggedBytesMax = 1024;

class AccessLog {
 public:
  struct Entry {
    Denied denied;
    uint64_t id = 0;  // in the order of the first events, since the start
    uint64_t count = 1;
    int64_t first_ms = 0;
    int64_t last_ms = 0;
  };

  void set_limit(size_t limit);
  void add(Denied denied, int64_t now_ms);
  // Up to `count` of the newest ones.
  std::vector<Entry> newest(size_t count) const;
  void clear();
  // Since the start.
  uint64_t count(Reason reason) const {
    return counts_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, 5> counts_{};
  mutable std::mutex mutex_;  // guards the three below
  std::deque<Entry> entries_;
  uint64_t next_id_ = 0;
  size_t limit_ = 128;
};

std::string_view reason_name(Reason reason);

}  // namespace server::acl
