// SPDX-License-Identifier: MIT
//
// Connection: one client's socket. Reads what has come, has every complete command executed in
// order, and sends the replies of one read in one write.
//
// A client that does not read is bounded: past kUnsentBytesMax nothing more of it is executed or
// read until it has taken half of that. One that has not logged in may send and owe a few KiB only.
//
// Invariants: lives on one I/O thread; its thread's map holds it until it is closed.
// Thread safety: all members from that thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "protocol/request_parser.h"
#include "server/dispatch/dispatcher.h"
#include "server/commands/services.h"
#include "server/net/asio_types.h"
#include "server/net/io_threads.h"
#include "server/net/readiness.h"
#include "server/session/output_limit.h"

namespace server::net {

class Connection final : public Readiness::Watcher,
                         public std::enable_shared_from_this<Connection> {
 public:
  // Takes over the session's descriptor.
  Connection(IoThread& thread, Services& services, std::shared_ptr<Session> session);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins to read. REQUIRES: the thread's map holds the connection.
  void start();
  // Ends the connection without sending what is unsent.
  void close();
  // A client idle for longer than this is closed; 0 is never.
  void close_if_idle(int64_t now_ms, int64_t timeout_ms);
  // A client over its output limit is closed, even if nothing has happened on its socket.
  void close_if_over_output_limit();
  // Begins a new interval for the peak of the output buffer.
  void restart_output_peak();
  // Queues a message behind the unsent replies, unless the session does not hold its subscription
  // any more; returns the bytes. send_messages() must follow.
  size_t add_message(const Message& message, uint64_t serial);
  void send_messages();
  // After CLIENT KILL or UNPAUSE: closes, or lets a held-back command try again.
  void wake();

  // Sends the replies that IoThread::owe() was told of, or keeps them until the append log has come
  // far enough.
  void send_owed(std::string_view replies, uint64_t log_offset);
  // Sends the replies that waited for the append log, if it has come far enough, or fails: those to
  // writes are errors then. Else false.
  bool release();

  // Answers WAIT if replicas have come far enough.
  void check_acks();

  void on_ready(uint32_t events) override;

 private:
  // Why execution of buffered commands stopped.
  enum class Stop : uint8_t { kNeedInput, kHeldBack, kOutputFull, kBlocked, kClose };
  // What the connection waits for besides input.
  enum class Wait : uint8_t {
    kNothing,
    kEndOfPause,   // a command is held back by CLIENT PAUSE
    kReader,       // the client must take replies first
    kLog,          // the replies answer writes that are not in the append log yet
    kAcks,         // a command waits for replicas or disks
    kLastReplies,  // the connection closes when all is sent
  };

  // Reads once into the thread's buffer; empty when nothing was there and at the end of the input.
  std::string_view read_available();
  // How much may be read at once.
  size_t input_room() const;
  // Keeps the beginning of a command. REQUIRES: nothing is kept.
  void keep_input(std::string_view rest);
  // Gives back what a big command has taken.
  void give_back_input();
  // Closes when more is kept than a client may send for one command.
  void check_input();
  // Whether a client that has not logged in gets more replies than it may have; the last one begins
  // at `reply_begin`.
  bool owes_too_much(size_t reply_begin);
  // Has the clients' memory looked at once this client's has grown much.
  void limit_memory();
  // CONFIG SET reaches clients that are already there.
  void apply_parser_limits();
  // Executes what is buffered and `fresh`, sends replies, decides what to wait for.
  void proceed(std::string_view fresh);
  // What follows once the replies of execute() may leave; true when there may be more to execute.
  bool settle();
  // True when the replies can leave at the end of the round, with those of other clients.
  bool owes_replies(uint64_t log_offset);
  // True when the replies must wait; then they do.
  bool holds_replies(uint64_t log_offset);
  void wait_for_log(std::string_view replies, uint64_t log_offset);
  // Puts the error in the place of the replies to the writes that wait for the log.
  void answer_held_writes(std::string_view error);
  // Whether the present execute() has run commands that may write.
  bool has_written() const;
  // The replies of the present execute().
  std::string_view fresh_replies() const { return thread_.replies.view().substr(reply_mark_); }
  Stop execute(std::string_view fresh);
  Stop execute_complete(std::string_view data, size_t& consumed);
  // Parses the next requests of `data` into the thread's batch; what ended it, and after how many
  // bytes.
  struct Gathered {
    protocol::RequestParser::Status last;
    size_t size_bytes;
  };
  Gathered gather(std::string_view data);
  Stop execute_batch(int64_t now_ms, size_t& consumed);
  void send_replies();
  // Sends what the socket takes at once and keeps the rest.
  void send_or_keep(std::string_view bytes);
  // Hands bytes to the kernel; how many it took.
  size_t send_now(std::string_view bytes);
  void send_unsent();
  void wait_for(Wait wait);
  void wait_for_acks();
  void arm_timer(std::chrono::milliseconds delay);
  void on_timer();
  void update_interest();
  void publish_buffer_sizes();
  void publish_input_sizes(size_t size_bytes, size_t free_bytes);

  // Replies gathered before a write in the midst of a read batch.
  static constexpr size_t kReplyBatchBytes = 1 << 20;
  // Unsent replies above which a client's commands wait.
  static constexpr size_t kUnsentBytesMax = 32 << 20;
  // A client that takes no byte for so long, with its commands waiting, is closed.
  static constexpr std::chrono::milliseconds kStalledMax{60'000};
  // Of a client that has not logged in: all that is kept of its input, and its unsent replies.
  static constexpr size_t kUnknownInputBytesMax = size_t{20} << 10;
  static constexpr size_t kUnknownReplyBytesMax = size_t{4} << 10;

  IoThread& thread_;
  Services& services_;
  std::shared_ptr<Session> session_;
  ThreadStatistics& counters_;
  Dispatcher dispatcher_;
  protocol::RequestParser parser_;
  int64_t bulk_bytes_max_ = 0;  // what parser_ was told
  std::string input_;           // bytes of commands not yet complete, or held back
  protocol::OutputBuffer unsent_;
  OutputLimit output_limit_;
  Timer timer_;
  size_t reply_mark_ = 0;  // where this client's replies begin in thread_.replies
  size_t output_peak_bytes_ = 0;
  size_t unknown_reply_bytes_ = 0;    // unsent ones to commands before AUTH
  uint64_t judged_memory_bytes_ = 0;  // when the clients' memory was looked at
  bool took_bytes_ = false;           // since the timer was armed
  uint32_t interest_ = EPOLLIN;
  Wait wait_ = Wait::kNothing;
  Stop stop_ = Stop::kNeedInput;             // how the last execute() ended
  uint64_t held_until_ = 0;                  // the journal offset that Wait::kLog waits for
  std::vector<IoThread::Span> held_writes_;  // in unsent_: replies to the writes that wait with it
  bool open_ = true;
  bool end_of_input_ = false;
};

}  // namespace server::net
