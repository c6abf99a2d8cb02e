// SPDX-License-Identifier: MIT
//
// HttpConnection: one connection of the admin port. Reads requests and sends answers, one at a
// time.
//
//   kReads ──request──► kSends ──sent──► kReads
//      └─► kWaits ────────┘ └─ last answer sent ─► kLingers
//
// kWaits: another thread produces the answer. kLingers: discards further input, because closing a
// socket with unread input could lose the answer.
//
// Invariants: a connection holds at most the header of one request and one answer in memory. Each
// state has a time limit, which is_late() checks.
// Thread safety: belongs to the admin port's thread.
// Source: RFC 9112, sections 9.3 and 9.6.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/admin/access.h"
#include "server/admin/request_reader.h"
#include "server/base/transport/stream.h"
#include "server/net/loop/asio_types.h"

namespace server::admin {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Answer = std::function<HttpResponse(const HttpRequest&, const Peer&)>;
  struct Parts {
    net::asio::io_context& context;
    int descriptor;                  // descriptor of `stream`, which owns it
    std::unique_ptr<Stream> stream;  // the descriptor must be non-blocking
    bool is_encrypted = false;
    Peer peer;
    Answer answer;
  };
  static constexpr int64_t kRequestMaxUs = 10'000'000;
  static constexpr int64_t kIdleMaxUs = 120'000'000;
  static constexpr int64_t kWaitMaxUs = 30'000'000;
  static constexpr int64_t kSendMaxUs = 30'000'000;
  static constexpr int64_t kLingerMaxUs = 1'000'000;

  HttpConnection(Parts parts, int64_t now_us);
  ~HttpConnection() { close(); }

  void start();
  void close();
  bool is_closed() const { return state_ == State::kClosed; }
  // Returns whether the connection has stayed in its present state for longer than the time limit
  // of that state.
  bool is_late(int64_t now_us) const;
  // Returns the time of the last progress: when the connection entered its present state or began
  // to receive a request. If there are too many connections, the connection with the oldest
  // progress is closed.
  int64_t progressed_us() const { return since_us_; }

 private:
  enum class State : uint8_t { kReads, kWaits, kSends, kLingers, kClosed };
  using Descriptor = net::asio::posix::basic_stream_descriptor<net::Executor>;

  void enter(State state);
  void wait(Descriptor::wait_type kind);
  void on_ready();
  // These functions read, send or discard bytes. They return true if on_ready() can continue in the
  // present state without waiting for the socket.
  bool read();
  bool take_requests();
  bool send();
  bool linger();
  void respond(const HttpResponse& response, bool keeps_alive, bool is_head);
  // Returns immediately. Sends the response when another thread has produced it.
  void respond_later(const HttpResponse& response, bool keeps_alive);

  Parts parts_;
  Descriptor descriptor_;
  RequestReader reader_;
  std::string output_;
  size_t sent_ = 0;
  bool is_last_ = false;  // true if the connection closes after this answer
  bool has_answered_ = false;
  bool holds_bytes_ = false;          // true if the stream still has bytes to send
  bool has_another_request_ = false;  // true if the buffer holds bytes of the next request
  size_t discarded_ = 0;
  State state_ = State::kReads;
  int64_t since_us_;
};

// Returns the present time in microseconds, by the monotonic clock that measures the time limits of
// connections.
int64_t steady_us();

}  // namespace server::admin
