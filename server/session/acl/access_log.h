// SPDX-License-Identifier: MIT
//
// AccessLog: the latest failed logins and denied commands, and their total numbers, for ACL LOG.
//
// Invariants: the newest entry comes first. If an event occurs again within a minute after its last
// occurrence, the count of its entry increases, and no entry is added. As in Redis, the log is cut
// to its limit only when a new entry is added.
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

// The reason for a denial. If several selectors deny a command for different reasons, ACL LOG shows
// the reason with the highest number.
enum class Reason : uint8_t { kCommand = 1, kKey, kLogin, kChannel };

struct Denied {
  Reason reason = Reason::kCommand;
  bool in_transaction = false;
  // The denied command, key or channel. For a failed login it is the command, or "http" at the
  // admin port.
  std::string object{};
  std::string user{};
  std::string client{};  // the line that describes the client in CLIENT LIST
};

// Names chosen by clients are truncated to this size, so that the log stays small.
inline constexpr size_t kLoggedBytesMax = 1024;

class AccessLog {
 public:
  struct Entry {
    Denied denied;
    // The entry's number. Entries are numbered in the order of their first events.
    uint64_t id = 0;
    uint64_t count = 1;
    int64_t first_ms = 0;
    int64_t last_ms = 0;
  };

  void set_limit(size_t limit);
  void add(Denied denied, int64_t now_ms);
  // Returns up to `count` of the newest entries.
  std::vector<Entry> newest(size_t count) const;
  void clear();
  // Returns the number of denials for this reason since the server started.
  uint64_t count(Reason reason) const {
    return counts_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, 5> counts_{};
  mutable std::mutex mutex_;  // this mutex guards the entries, next_id_ and the limit
  std::deque<Entry> entries_;
  uint64_t next_id_ = 0;
  size_t limit_ = 128;
};

std::string_view reason_name(Reason reason);

}  // namespace server::acl
