// SPDX-License-Identifier: MIT
//
// Journal: the single ordered stream of effective writes, as RESP commands. The append log and the
// replicas get the same commands. In addition, the replicas get the commands of
// publish_to_replicas(). end_offset() counts the bytes that were appended for the append log.
//
//   changing thread (holds the key's stripe)    append log's writer
//   append() ──► pending bytes ──────────────► take()
//           └──► second sink (replicas)
//
// Invariants: for every key, the order of appends is the order of changes, because the key's lock
// is held during the change and its append. A Group reaches the journal whole or not at all, and
// its keys stay locked until it does. SELECT precedes a command if the preceding command of the
// same stream is for another database. SELECT also precedes the first command after
// restate_database().
// Thread safety: all members may be called from any thread, take() from one thread at a time.
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

#include "core/keyspace/rw_lock.h"
#include "core/memory/allocation_size.h"

namespace persistence {

using Words = std::span<const std::string_view>;

// Appends the words as an array of bulk strings.
void append_command(std::string& out, Words words);

// StreamSink: receives the stream as it is produced. A call never ends within a command or a Group.
class StreamSink {
 public:
  virtual void append(std::string_view bytes) = 0;

 protected:
  ~StreamSink() = default;
};

class Journal {
 public:
  // Group: collects the commands of its thread. The destructor appends them to the journal
  // together, between MULTI and EXEC if there are two or more. A nested Group is part of the outer
  // Group.
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
      size_t end;         // offset of the command's end in bytes_
      bool is_published;  // true if only replicas get the command, not the log
    };
    void add(std::optional<unsigned> database, Words words, bool is_published);

    Journal& journal_;
    std::string bytes_;
    std::vector<Command> commands_;
    bool has_published_ = false;
    bool has_appended_ = false;
  };

  // Returns whether the journal accepts commands. While it does not, an append costs only the read
  // of one atomic flag.
  bool is_active() const { return active_.load(std::memory_order_acquire); }
  // Sets whether the journal serves an append log. The log must take() all bytes that are appended
  // from then on.
  void set_active(bool active);
  // Sets the second sink, which is called while the journal's lock is held; null removes the sink.
  // Without an append log the bytes are not kept and not counted in end_offset(). The sink must
  // stay alive until it is removed.
  void set_second_sink(StreamSink* sink);
  // Publishes a command, such as a message, to the second sink only. The command must not change
  // data. In a Group it keeps its position among the other commands. `database` is the client's
  // database, which the stream selects first, as in Redis; nullopt for a command of the server.
  void publish_to_replicas(Words words, std::optional<unsigned> database = std::nullopt);
  // Suspends the journal, or resumes it. A suspended journal ignores all commands, because the data
  // are being loaded.
  void suspend(bool suspended);

  // Appends a command. REQUIRES: the locks of the keys that the command changes are held.
  void append(unsigned database, Words words) {
    if (is_active()) append_active(database, words);
  }
#ifndef NDEBUG
  // Returns the number of appended commands, including those of open Groups. For assertions.
  uint64_t append_count() const {
    return append_count_.load();
  }
#endif
  // Appends a command outside of this thread's Group, so that it precedes the commands of the
  // Group. Used for a key that is unlocked before the Group ends.
  void append_alone(unsigned database, Words words) {
    if (is_active()) write(database, words);
  }
  // Returns whether this thread has appended to a Group that has not reached the journal yet.
  static bool has_open_group();

  // Returns the offset at which the stream for the append log ends now.
  uint64_t end_offset() const {
    return end_.load(std::memory_order_acquire);
  }
  // Calls `look` while no thread can append. The arguments of `look` are end_offset() and the
  // database that is selected in the second sink's stream.
  template <class Look>
  void look_at_ends(Look&& look) {
    const std::scoped_lock lock(mutex_);
    look(end_offset(), second_sink_database_);
  }
  // Moves the pending bytes to `out`, which must be empty, and returns the offset of their end.
  uint64_t take(std::string& out);
  // Returns the memory of the buffer that holds the pending bytes.
  uint64_t memory_bytes() const {
    return core::text_bytes(pending_capacity_.load(std::memory_order_relaxed));
  }
  // Makes the journal write SELECT before the next command. Called when a new file or a new replica
  // has received no SELECT yet.
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
  // write_group() and all functions after it require that mutex_ is held.

  // Appends the group's commands to `out`, between MULTI and EXEC if there are two or more. With
  // `with_published`, which is true for the second sink only, this includes the commands that were
  // passed to publish_to_replicas().
  static void write_group(std::string& out, const Group& group, bool with_published,
                          std::optional<unsigned>& selected);
  // Writes the same bytes to the streams of the append log and of the second sink. write(selected)
  // appends the bytes. `selected` is the database that is selected in both streams, or nullopt if
  // the streams differ. write() sets it to the database that is selected after the new bytes.
  template <class Write>
  void write_to_both(Write&& write) {
    auto selected = database_ == second_sink_database_ ? database_ : std::nullopt;
    const size_t begin = pending_.size();
    write(selected);
    database_ = second_sink_database_ = selected;
    publish(begin, second_sink_);
  }
  // Grows pending_ so that `bytes` more fit. The copy takes time, and during the copy
  // memory_bytes() includes both the old and the new buffer.
  void reserve(size_t bytes);
  void publish(size_t begin, StreamSink* sink);
  void update_activity();

  static constexpr size_t kCacheLine = 64;

  std::atomic<bool> active_{false};
#ifndef NDEBUG
  std::atomic<uint64_t> append_count_{0};
#endif
  // True if the journal serves an append log. The flag is guarded by mutex_ and rarely changes.
  bool is_logged_ = false;
  bool is_suspended_ = false;
  StreamSink* second_sink_ = nullptr;
  // The members that each append changes share one cache line. That line is often in another
  // processor's cache, so an append should transfer only one line.
  alignas(kCacheLine) core::keyspace::RwLock mutex_;  // this lock is held while a command is copied
  std::string pending_;               // bytes not passed to the log yet; guarded by mutex_
  uint64_t taken_ = 0;                // offset of pending_ in the stream; guarded by mutex_
  std::optional<unsigned> database_;  // database selected in the log; guarded by mutex_
  std::atomic<uint64_t> end_{0};
  std::atomic<size_t> pending_capacity_{0};  // capacity of pending_, or more
  // Database that is selected in the stream of the second sink; guarded by mutex_.
  std::optional<unsigned> second_sink_database_;
};

}  // namespace persistence
