// SPDX-License-Identifier: MIT
//
// Journal: the one ordered stream of effective writes, as RESP commands. The append log and the
// replicas get the same bytes; an offset counts them since the server's first start.
//
//   changing thread (holds the key's stripe)    taker (file, replicas)
//   append() ──► pending bytes ──────────────► take()
//
// Invariants: the order of appends is the order of changes for every key, because the key's lock is
// held around both. A Group reaches the journal whole or not at all. SELECT precedes a command
// whose database is not that of the one before it, and the first after restate_database().
// Thread safety: all members may be called from any thread; take() by one at a time.
// Source: docs/architecture.md, "The journal".
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace persistence {

using Words = std::span<const std::string_view>;

// Appends the words as an array of bulk strings.
void append_command(std::string& out, Words words);

class Journal {
 public:
  // Commands appended by this thread while a Group lives on it reach the journal together when it
  // ends: two or more between MULTI and EXEC. Groups do not nest.
  class Group {
   public:
    explicit Group(Journal& journal);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    friend class Journal;
    struct Command {
      unsigned database;
      size_t end;  // in bytes_
    };
    Journal& journal_;
    std::string bytes_;
    std::vector<Command> commands_;
  };

  // An inactive journal takes nothing, and costs its callers one load.
  bool is_active() const { return active_.load(std::memory_order_acquire); }
  void set_active(bool active) { active_.store(active, std::memory_order_release); }

  // REQUIRES: the locks of the keys that the command changes.
  void append(unsigned database, Words words) {
    if (is_active()) append_active(database, words);
  }

  // Where the stream ends now.
  uint64_t end_offset() const { return end_.load(std::memory_order_acquire); }
  // Where it ended after this thread's last append; 0 before the first.
  static uint64_t end_of_last_append();
  // Moves what has not been taken to `out`, which is empty, and returns the stream's end behind it.
  uint64_t take(std::string& out);
  // Makes the next command state its database: a new file or replica knows of no SELECT.
  void restate_database();

 private:
  void append_active(unsigned database, Words words);
  void append_group(const Group& group);
  // REQUIRES: mutex_.
  void select(unsigned database);
  void publish_end();

  std::atomic<bool> active_{false};
  std::atomic<uint64_t> end_{0};
  std::mutex mutex_;  // guards what follows
  std::string pending_;
  uint64_t taken_ = 0;  // stream bytes before pending_
  std::optional<unsigned> database_;
};

}  // namespace persistence
