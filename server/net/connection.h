// SPDX-License-Identifier: MIT
//
// Connection: one client's socket. Reads what has come, has every complete command executed in
// order, and sends the replies of one read in one write.
//
// A coroutine reads; a second one writes, but only while the socket does not take replies at
// once. A client that does not read is bounded: past kUnsentBytesMax nothing of it is executed.
//
// Invariants: lives on one I/O thread; no lock is held across a suspension.
// Thread safety: all members from that thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "protocol/request_parser.h"
#include "server/commands/dispatcher.h"
#include "server/net/asio_types.h"
#include "server/net/io_threads.h"
#include "server/services.h"

namespace server::net {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, IoThread& thread, Services& services,
             std::shared_ptr<Session> session);
  ~Connection();

  // Spawns the reader; the connection lives until it ends.
  void start();
  // Ends the connection without sending what is unsent.
  void close();
  // A client idle for longer than this is closed; 0 is never.
  void close_if_idle(int64_t now_ms, int64_t timeout_ms);
  // Lets a command that CLIENT PAUSE holds back try again.
  void wake();

 private:
  // Why execution of buffered commands stopped.
  enum class Stop { kNeedInput, kHeldBack, kOutputFull, kClose };

  Awaitable<> run_reader();
  Awaitable<> run_writer();
  // Reads once into the thread's buffer; empty when nothing was there, at the end of the input
  // (`end_of_input_`) and after an error (`open_` is false).
  std::string_view read_available();
  // Executes what is buffered and `fresh`, keeps the rest.
  Stop execute(std::string_view fresh);
  Stop execute_complete(std::string_view data, size_t& consumed);
  // Sends the thread's replies, keeps what the socket does not take.
  void send_replies();
  bool over_output_limit();
  Awaitable<> wait_until_sent(size_t unsent_max);
  Awaitable<> wait_while_held_back();
  void publish_buffer_sizes();

  // Replies gathered before a write in the midst of a read batch.
  static constexpr size_t kReplyBatchBytes = 1 << 20;
  // Unsent replies above which a client's commands wait.
  static constexpr size_t kUnsentBytesMax = 32 << 20;
  // A client that takes no byte for so long, with its commands waiting, is closed.
  static constexpr auto kStalledMax = std::chrono::seconds(60);

  Socket socket_;
  IoThread& thread_;
  Services& services_;
  std::shared_ptr<Session> session_;
  Dispatcher dispatcher_;
  protocol::RequestParser parser_;
  std::string input_;  // bytes of commands not yet complete, or held back
  protocol::OutputBuffer unsent_;
  Timer wake_timer_;          // ends waits early when cancelled
  bool writing_ = false;
  bool open_ = true;
  bool end_of_input_ = false;
};

}  // namespace server::net
