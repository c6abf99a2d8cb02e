// SPDX-License-Identifier: MIT
//
// Connection: one client. Reads its bytes, has every complete command run in order, and gives the
// replies to the thread's gate.
//
// A client that does not read its replies is bounded. Past 32 MiB of unsent replies the server
// stops reading and executing its commands until half of that is sent. A client that has not logged
// in is limited to a few KiB of input and of unsent replies.
//
// Invariants: lives on one I/O thread, which holds it until it is closed. While replies are held
// for the append log, nothing is read or executed.
// Thread safety: all members from that thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/commands/services.h"
#include "server/loop/asio_types.h"
#include "server/net/client_input.h"
#include "server/net/client_output.h"
#include "server/net/io_threads.h"
#include "server/net/request_runner.h"
#include "server/session/session.h"
#include "server/transport/stream.h"

namespace server {
struct Delivery;
}

namespace server::net {

class Connection final : public SocketSet::Watcher, public ReplySink {
 public:
  // Takes over the session's descriptor.
  Connection(IoThread& thread, Services& services, std::shared_ptr<Session> session);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins to read. REQUIRES: the thread holds the connection.
  void start();
  // Ends the connection; unsent bytes are dropped.
  void close() override;
  // Called once a second with the monotonic time. Closes a client that is over its output limit or
  // has been idle for longer than `timeout_us`; 0 stands for no limit. Gives back the free input
  // memory of a client that has been idle for two seconds. May begin a new interval for the peak of
  // the output buffer.
  void on_tick(int64_t now_us, int64_t timeout_us, bool restarts_peak);
  // A client over its output limit is closed, even if nothing has happened on its socket.
  void close_if_over_output_limit();
  // Queues a message behind the unsent replies, unless the session has ended its subscription.
  // Returns the bytes. send_unsent() must follow.
  size_t add_message(const Delivery& delivery, uint64_t serial);
  void send_unsent(bool is_ready = false);
  // Sends lines of MONITOR behind the unsent replies, unless the session has ended it; closes the
  // client when lines before these were lost.
  void add_monitored(std::string_view lines, bool are_some_lost);
  // After CLIENT KILL or UNPAUSE: closes, or lets a held-back command try again.
  void wake();
  // The event that the blocked command waits for may have happened.
  void poll();

  void on_ready(uint32_t events) override;
  void send(std::string_view replies, protocol::OutputBuffer* whole) override;
  void hold(std::string_view replies, std::span<const ReplySpan> writes,
            protocol::OutputBuffer* whole) override;
  void release(std::string_view error) override;

 private:
  enum class State : uint8_t {
    kReading,     // waits for input
    kRunning,     // there is more to execute
    kPaused,      // a command is held back by CLIENT PAUSE
    kBlocked,     // a command waits for replicas, disks or other threads
    kSlowReader,  // the client must take replies first
    kClosing,     // closes when all is sent
    kClosed,
  };

  // Reads once, and goes on with that.
  void receive();
  // Closes when more is kept than a client may send for one command.
  void check_input();
  // Counts what the client takes, and evicts clients if all together take too much. Those of this
  // thread are closed, maybe this one, too.
  void limit_memory();
  // Evicts keys if more input exceeds the limit.
  void make_room(size_t input_bytes);
  bool is_killed() const { return session_->kill_requested.load(std::memory_order_relaxed); }

  // Executes the buffered input and `fresh`, and gives the replies to the gate.
  void proceed(std::string_view fresh);
  // Enters the next state after the replies were flushed; true when there may be more to execute.
  bool settle();
  // Runs the complete commands; returns the next state.
  State execute(std::string_view fresh);
  static State state_after(RequestRunner::End end);

  // Whether the state is this one and the replies before have left.
  bool is_in(State state) const { return state_ == state && !output_.is_held(); }
  void await_end_of_pause();
  void await_reply();
  // Enters a state that ends when the client has taken bytes.
  void await_reader(State state);
  void arm_timer(std::chrono::milliseconds delay);
  void on_timer();
  // When bytes have been sent or kept.
  void check_output();
  BufferLimit output_limit() const;
  // Bytes of replies that would break the hard limit.
  size_t reply_bytes_limit() const;
  void close_over_output_limit();
  void update_interest();
  void publish_buffer_sizes();
  // While commands of these bytes run.
  void publish_running_input(size_t size_bytes);

  IoThread& thread_;
  Services& services_;
  std::shared_ptr<Session> session_;
  ThreadStatistics& counters_;
  const std::shared_ptr<Stream> stream_;
  ClientOutput output_;
  RequestRunner runner_;
  ClientInput input_;
  Timer timer_;
  uint32_t interest_ = EPOLLIN;
  State state_ = State::kReading;
};

}  // namespace server::net
