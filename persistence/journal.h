// SPDX-License-Identifier: MIT
//
// Journal: the one ordered stream of effective writes, as RESP commands. The append log and the
// replicas get the same bytes; end_offset() counts those of this process, starting at 0.
//
//   changing thread (holds the key's stripe)    taker (file)
//   append() ──► pending bytes ──────────────► take()
//           └──► second sink (replicas)
//
// Invariants: the order of appends is the order of changes for every key, because the key's lock is
// held around both. A Group reaches the journal whole or not at all, and its keys stay locked until
// it does. SELECT precedes a command whose database is not that of the one before it in the same
// stream, and the first after restate_database().
// Thread safety: all members may be called from any thread; take() by one at a time.
// Source: docs/architecture.md, "The journal".
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/rw_lock.h"

namespace persistence {

using Words = std::span<const std::string_view>;

// Appends the words as an array of bulk strings.
void append_command(std::string& out, Words words);

// Takes the stream as it is made: whole commands, whole groups.
class StreamSink {
 public:
  virtual void append(std::string_view bytes) = 0;

 protected:
  ~StreamSink() = default;
};

class Journal {
 public:
  // Commands appended by this thread while a Group lives on it reach the journal together when it
  // ends: two or more between MULTI and EXEC. One within another is part of that one.
  class Group {
   public:
    explicit Group(Journal& journal);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    friend class Journal;
    struct Command {
      std::optional<unsigned> database;
      size_t end;    // in bytes_
      bool is_told;  // by tell_second_sink()
    };
    void add(std::optional<unsigned> database, Words words, bool is_told);

    Journal& journal_;
    std::string bytes_;
    std::vector<Command> commands_;
    bool has_told_ = false;
    bool has_appended_ = false;
  };

  // An inactive journal takes nothing, and costs its callers one load.
  bool is_active() const { return active_.load(std::memory_order_acquire); }
  // Whether there is an append log, which will take() what is appended from now on.
  void set_active(bool active);
  // Gets the same bytes, under the journal's lock; null for nobody. Bytes that nobody but it wants
  // are not kept, and do not count in end_offset(). It must outlive its being set.
  void set_second_sink(StreamSink* sink);
  // A command that changes nothing: for the second sink alone, and for nobody when there is none.
  // In a Group it keeps its place among the others. `database`: that of the client, as Redis states
  // it in its stream; nothing for a command of the server itself.
  void tell_second_sink(Words words, std::optional<unsigned> database = std::nullopt);
  // While data is loaded: nothing is taken, for anybody.
  void suspend(bool suspended);

  // REQUIRES: the locks of the keys that the command changes.
  void append(unsigned database, Words words) {
    if (is_active()) append_active(database, words);
  }
#ifndef NDEBUG
  // How many commands were appended, those of open Groups included: for assertions.
  uint64_t append_count() const {
    return append_count_.load();
  }
#endif
  // Not with this thread's Group, but before it: for a key that is unlocked before the Group ends.
  void append_alone(unsigned database, Words words) {
    if (is_active()) write(database, words);
  }
  // Whether this thread has appended to a Group that has not reached the journal yet.
  static bool has_open_group();

  // Where the stream ends now.
  uint64_t end_offset() const {
    return end_.load(std::memory_order_acquire);
  }
  // Where it ended after this thread's last append; 0 before the first.
  static uint64_t end_of_last_append();
  // Moves what has not been taken to `out`, which is empty, and returns the stream's end behind it.
  uint64_t take(std::string& out);
  // Makes the next command state its database: a new file or replica knows of no SELECT.
  void restate_database();

 private:
  void append_active(unsigned database, Words words);
  void count_append() {
#ifndef NDEBUG
    ++append_count_;
#endif
  }
  void write(unsigned database, Words words);
  void append_group(const Group& group);
  // REQUIRES for all: mutex_.
  // The transaction that the group is, for the log or, `with_told`, for the second sink.
  static void write_group(std::string& out, const Group& group, bool with_told,
                          std::optional<unsigned>& selected);
  // Writes what both streams get. `write` gets the database that is selected in both of them, or
  // nothing, and leaves there the one that it has selected.
  template <class Write>
  void write_to_both(Write&& write) {
    auto selected = database_ == second_sink_database_ ? database_ : std::nullopt;
    const size_t begin = pending_.size();
    write(selected);
    database_ = second_sink_database_ = selected;
    publish(begin, second_sink_);
  }
  void publish(size_t begin, StreamSink* sink);
  void update_activity();

  static constexpr size_t kCacheLine = 64;

  std::atomic<bool> active_{false};
#ifndef NDEBUG
  std::atomic<uint64_t> append_count_{0};
#endif
  // Guarded by mutex_, and rarely changed.
  bool is_logged_ = false;
  bool is_suspended_ = false;
  StreamSink* second_sink_ = nullptr;
  // What every append changes comes from another processor's cache in one piece.
  alignas(kCacheLine) core::keyspace::RwLock mutex_;  // held while a command is copied
  std::string pending_;                               // guarded by mutex_
  uint64_t taken_ = 0;                                // stream bytes before pending_, so is this
  std::optional<unsigned> database_;                  // selected in the log, and this
  std::atomic<uint64_t> end_{0};
  // Selected in the stream of the second sink; guarded by mutex_.
  std::optional<unsigned> second_sink_database_;
};

}  // namespace persistence
