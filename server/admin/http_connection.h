// SPDX-License-Identifier: MIT
//
// HttpConnection: one client of the admin port: reads requests, sends answers, one at a time.
//
//   kReads ──request──► kSends ──sent──► kReads
//      └─► kWaits ────────┘ └─ the last answer ─► kLingers: what still comes is thrown away, so
//      that
//          for an answer                          the answer is not lost with it
//          that comes later
//
// Invariants: what it holds is bounded: a request's header and one answer. Each state has a limit
// of time, which is_late() watches. Thread safety: belongs to the admin port's thread. Source: RFC
// 9112, sections 9.3 and 9.6.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/admin/access.h"
#include "server/admin/request_reader.h"
#include "server/loop/asio_types.h"
#include "server/transport/stream.h"

namespace server::admin {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Answer = std::function<HttpResponse(const HttpRequest&, const Peer&)>;
  struct Parts {
    net::asio::io_context& context;
    int descriptor;                  // of `stream`, which owns it
    std::unique_ptr<Stream> stream;  // does not block
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
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void start();
  void close();
  bool is_closed() const { return state_ == State::kClosed; }
  // Returns whether the current step (reading or writing) has exceeded its time limit.
  bool is_late(int64_t now_us) const;
  // When it last got on: the connection that is the first to give way to others has the least.
  int64_t progressed_us() const { return since_us_; }

 private:
  enum class State : uint8_t { kReads, kWaits, kSends, kLingers, kClosed };
  using Descriptor = net::asio::posix::basic_stream_descriptor<net::Executor>;

  void enter(State state);
  void wait(Descriptor::wait_type kind);
  void on_ready();
  // Each function returns whether more work is ready.
  bool read();
  bool take_requests();
  bool send();
  void linger();
  void respond(const HttpResponse& response, bool keeps_alive, bool is_head);
  // The response comes from another thread.
  void respond_later(const HttpResponse& response, bool keeps_alive);

  Parts parts_;
  Descriptor descriptor_;
  RequestReader reader_;
  std::string output_;
  size_t sent_ = 0;
  bool is_last_ = false;  // the connection ends behind the answer
  bool has_answered_ = false;
  bool holds_bytes_ = false;          // the stream waits to send
  bool has_another_request_ = false;  // a second request has come with the first one
  size_t discarded_ = 0;
  State state_ = State::kReads;
  int64_t since_us_;
};

// Monotonic microseconds, of the clock that the limits are measured with.
int64_t steady_us();

}  // namespace server::admin
