// SPDX-License-Identifier: MIT
//
// Connection: the connection of one client. Reads the client's bytes, runs complete commands in
// order, and passes the replies to the thread's ReplyGate.
//
// The unsent replies of a client are limited. Above 32 MiB the server stops reading and executing
// the client's commands until at most 16 MiB are unsent. A client that has not logged in is limited
// to 20 KiB of input and 4 KiB of unsent replies.
//
// Invariants: belongs to one I/O thread, which owns the connection until it is closed. While
// replies are held for the append log, nothing is read or executed.
// Thread safety: all members must be called on the I/O thread that owns the connection.
#pragma once

#include <memory>
#include <string_view>

#include "server/base/transport/stream.h"
#include "server/commands/services.h"
#include "server/net/client_input.h"
#include "server/net/client_output.h"
#include "server/net/io_threads.h"
#include "server/net/loop/asio_types.h"
#include "server/net/request_runner.h"
#include "server/session/session.h"

namespace server {
struct Delivery;
}

namespace server::net {

inline constexpr std::string_view kUnblocked = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

class Connection final : public SocketSet::Watcher, public ReplySink {
 public:
  // Takes ownership of the session's descriptor.
  Connection(IoThread& thread, Services& services, std::unique_ptr<Session> session);
  ~Connection();

  // Starts to read from the client. REQUIRES: the thread's Connections contain the connection.
  void start();
  // Closes the connection, and drops its unsent bytes.
  void close() override;
  // Called once a second with the monotonic time. Closes a client that is over its output limit or
  // has been idle for longer than `timeout_us`; 0 stands for no limit. Gives back the free input
  // memory of a client that has been idle for two seconds. If `restarts_peak` is true, restarts the
  // measurement of the output buffer's peak size.
  void on_tick(int64_t now_us, int64_t timeout_us, bool restarts_peak);
  // Closes the connection if its unsent replies have reached client-output-buffer-limit.
  void close_if_over_output_limit();
  // Appends a message to the unsent replies, unless the session has ended the subscription with
  // this serial. Returns the number of bytes added. send_unsent() must be called afterwards.
  size_t add_message(const Delivery& delivery, uint64_t serial);
  void send_unsent(bool is_ready = false);
  // Sends lines of MONITOR after the unsent replies if the session still monitors. Closes the
  // client if earlier lines were lost.
  void add_monitored(std::string_view lines, bool are_some_lost);
  // Closes the connection if CLIENT KILL has ended it, or its user has lost a permission that the
  // session needs. Ends subscriptions to shard channels that this server no longer owns. Then
  // retries the command that is held back or blocked.
  void wake();
  // Checks whether the blocked command can be answered now.
  void poll();

  void on_ready(uint32_t events) override;
  void send(std::string_view replies, protocol::OutputBuffer* whole) override;
  void hold(std::string_view replies, std::span<const ReplySpan> writes,
            protocol::OutputBuffer* whole) override;
  void release(std::string_view error) override;

 private:
  enum class State : uint8_t {
    kReading,     // the connection waits for input
    kRunning,     // further commands can be executed without waiting for an event
    kPaused,      // CLIENT PAUSE holds a command back
    kBlocked,     // a command waits for replicas, disks or other threads
    kSlowReader,  // the connection waits until the client has read replies
    kClosing,     // the connection closes when all replies are sent
    kClosed,
  };

  // Reads once, and executes the commands in the bytes read.
  void receive();
  // Closes the connection if the unexecuted input exceeds the limit for one command.
  void check_input();
  // Counts the client's memory. Evicts keys if the announced input would exceed maxmemory, and
  // evicts clients if all clients together exceed the limit. Closes
  // the evicted clients of this thread, which may include this one.
  void limit_memory();
  // Returns the place for the next read, after room was made for memory that it needs.
  ClientInput::Room room();
  bool is_killed() const { return client_.kill_requested.load(std::memory_order_relaxed); }

  // Executes the commands in the stored input and in `fresh`, and passes the replies to the
  // thread's ReplyGate.
  void proceed(std::string_view fresh);
  // Enters the next state after the replies were flushed. Returns true if more commands may be
  // executed.
  bool settle();
  // Runs the complete commands, and returns the next state.
  State execute(std::string_view fresh);
  static State state_after(RequestRunner::End end);

  // Returns whether the connection is in `state` and no replies are held.
  bool is_in(State state) const { return state_ == state && !output_.is_held(); }
  void await_end_of_pause();
  void await_reply();
  // Enters `state`, which is kSlowReader or kClosing. The connection leaves that state when the
  // client has read enough replies.
  void await_reader(State state);
  void arm_timer(std::chrono::milliseconds delay);
  void on_timer();
  // Checks the unsent replies against the limits. Must be called when bytes have been sent or
  // stored.
  void check_output();
  BufferLimit output_limit() const;
  // Returns how many more bytes of replies the client's hard output limit allows.
  size_t reply_bytes_limit() const;
  void close_over_output_limit();
  void update_interest();
  void publish_buffer_sizes();
  // Publishes the size of the input for other threads, while commands of this input run.
  void publish_running_input(size_t size_bytes);

  IoThread& thread_;
  Services& services_;
  const std::unique_ptr<Session> session_;
  Client& client_;
  ThreadStatistics& counters_;
  const std::shared_ptr<Stream> stream_;
  ClientOutput output_;
  RequestRunner runner_;
  ClientInput input_;
  Timer timer_;
  uint32_t interest_ = EPOLLIN;
  State state_ = State::kReading;
  PendingReply pending_;  // in state kBlocked: the awaited reply; else empty
};

}  // namespace server::net
