// SPDX-License-Identifier: MIT
#include "server/admin/http_connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

namespace server::admin {
namespace {

constexpr size_t kReceivedMax = 4096;
constexpr size_t kDiscardedMax = size_t{64} << 10;

}  // namespace

int64_t steady_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

HttpConnection::HttpConnection(Parts parts, int64_t now_us)
    : parts_(std::move(parts)),
      descriptor_(parts_.context.get_executor(), parts_.descriptor),
      since_us_(now_us) {}

void HttpConnection::start() {
  wait(Descriptor::wait_read);
}

void HttpConnection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  // The stream owns the file descriptor and closes it. So Asio's object releases the file
  // descriptor without closing it.
  (void)descriptor_.release();
  parts_.stream->close();
}

bool HttpConnection::is_late(int64_t now_us) const {
  const bool is_idle = has_answered_ && !reader_.is_inside_request();
  const std::array<int64_t, 4> limits_us = {is_idle ? kIdleMaxUs : kRequestMaxUs, kWaitMaxUs,
                                            kSendMaxUs, kLingerMaxUs};
  return !is_closed() && now_us - since_us_ > limits_us[static_cast<size_t>(state_)];
}

void HttpConnection::enter(State state) {
  state_ = state;
  since_us_ = steady_us();
}

void HttpConnection::wait(Descriptor::wait_type kind) {
  descriptor_.async_wait(kind, [self = shared_from_this()](const net::ErrorCode& error) {
    if (!error && !self->is_closed()) self->on_ready();
  });
}

void HttpConnection::on_ready() {
  // In the state kWaits the connection waits for no socket event: the handler's answer resumes it.
  const auto is_idle = [this] { return state_ == State::kClosed || state_ == State::kWaits; };
  bool goes_on = true;
  while (goes_on && !is_idle()) {
    goes_on = state_ == State::kReads ? read() : state_ == State::kSends ? send() : linger();
  }
  if (is_idle()) return;
  if (std::exchange(has_another_request_, false)) {
    // The buffer already holds bytes of this client's next request. Other connections are served
    // before that request.
    return net::asio::post(parts_.context, [self = shared_from_this()] {
      if (self->is_closed()) return;
      (void)self->take_requests();
      self->on_ready();
    });
  }
  const bool sends = state_ == State::kSends || holds_bytes_;
  wait(sends ? Descriptor::wait_write : Descriptor::wait_read);
}

bool HttpConnection::read() {
  std::array<char, kReceivedMax + Stream::kExtraBytesMax> room;
  if (holds_bytes_) holds_bytes_ = parts_.stream->send({}).holds_bytes;
  const Stream::Outcome got = parts_.stream->receive({}, room, kReceivedMax);
  holds_bytes_ = got.holds_bytes;
  if (got.status == Stream::Status::kEnd || got.status == Stream::Status::kBroken) {
    close();
    return false;
  }
  if (got.status == Stream::Status::kLater) return false;
  // After the first request of a connection, the time limit of a request starts with the first byte
  // of that request.
  if (has_answered_ && !reader_.is_inside_request()) since_us_ = steady_us();
  reader_.feed({room.data(), got.bytes});
  return take_requests();
}

bool HttpConnection::take_requests() {
  switch (reader_.next()) {
    case RequestReader::Status::kNeedMore:
      // The socket may hold more bytes, but other connections are served before them.
      return false;
    case RequestReader::Status::kError:
      respond(reader_.refusal(), false, reader_.refuses_head());
      return true;
    case RequestReader::Status::kRequest:
      break;
  }
  const HttpRequest& request = reader_.request();
  const HttpResponse response = parts_.answer(request, parts_.peer);
  // After a wrong password the connection is closed. So a client that guesses passwords must
  // reconnect for each guess.
  const bool keeps_alive = request.keeps_alive && response.status != 401;
  if (response.later) {
    respond_later(response, keeps_alive);
    return false;
  }
  respond(response, keeps_alive, request.method == "HEAD");
  return true;
}

void HttpConnection::respond_later(const HttpResponse& response, bool keeps_alive) {
  enter(State::kWaits);
  // The answer may arrive after the connection was destroyed. But the io_context still exists when
  // the answer arrives.
  response.later(
      [weak = weak_from_this(), &context = parts_.context, keeps_alive](HttpResponse answer) {
        net::asio::post(context, [weak, keeps_alive, answer = std::move(answer)] {
          const auto self = weak.lock();
          if (self == nullptr || self->state_ != State::kWaits) return;
          self->respond(answer, keeps_alive, /*is_head=*/false);
          self->on_ready();
        });
      });
}

void HttpConnection::respond(const HttpResponse& response, bool keeps_alive, bool is_head) {
  output_ = encode(response, keeps_alive ? Ending::kKeepsAlive : Ending::kCloses, is_head);
  sent_ = 0;
  is_last_ = !keeps_alive;
  has_answered_ = true;
  enter(State::kSends);
}

bool HttpConnection::send() {
  while (sent_ < output_.size() || holds_bytes_) {
    const Stream::Outcome sent = parts_.stream->send(std::string_view(output_).substr(sent_));
    holds_bytes_ = sent.holds_bytes;
    if (sent.status == Stream::Status::kBroken || sent.status == Stream::Status::kEnd) {
      close();
      return false;
    }
    if (sent.status == Stream::Status::kLater) {
      if (sent_ < output_.size() || holds_bytes_) return false;
      break;
    }
    sent_ += sent.bytes;
  }
  output_.clear();
  output_.shrink_to_fit();
  sent_ = 0;
  if (is_last_) {
    // A TLS connection needs no shutdown of the socket, because close() sends TLS's closing
    // message.
    if (!parts_.is_encrypted) ::shutdown(parts_.descriptor, SHUT_WR);
    enter(State::kLingers);
    return true;
  }
  enter(State::kReads);
  has_another_request_ = reader_.is_inside_request();
  return false;
}

bool HttpConnection::linger() {
  std::array<char, kReceivedMax> room;
  const ssize_t size = ::recv(parts_.descriptor, room.data(), room.size(), MSG_DONTWAIT);
  if (size > 0) discarded_ += static_cast<size_t>(size);
  const bool is_over = size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  if (is_over || discarded_ > kDiscardedMax) close();
  return false;
}

}  // namespace server::admin
