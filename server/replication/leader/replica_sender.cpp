// SPDX-License-Identifier: MIT
#include "server/replication/leader/replica_sender.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace server {
namespace {

// Of one link before the others have their turn.
constexpr uint64_t kTurnBytes = uint64_t{1} << 20;

bool is_temporary(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

ReplicaSender::ReplicaSender(std::shared_ptr<Session> its_session)
    : session(std::move(its_session)),
      socket(::fcntl(session->socket.descriptor, F_DUPFD_CLOEXEC, 0)) {}

void ReplicaSender::send_file(Descriptor file, uint64_t size_bytes) {
  file_ = std::move(file);
  file_sent_ = 0;
  file_size_ = size_bytes;
}

ReplicaSender::Progress ReplicaSender::pump(const Backlog& backlog, bool flows,
                                            std::span<char> buffer, uint64_t& sent) {
  while (!outbox_.empty()) {
    const ssize_t size =
        ::send(socket.get(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kGone;
    outbox_.erase(0, static_cast<size_t>(size));
    sent += static_cast<uint64_t>(size);
  }
  if (file_.is_open()) return pump_file(sent);
  return flows ? pump_stream(backlog, buffer, sent) : Progress::kIdle;
}

ReplicaSender::Progress ReplicaSender::pump_file(uint64_t& sent) {
  uint64_t room = kTurnBytes;
  while (file_sent_ < file_size_) {
    if (room == 0) return Progress::kMore;
    auto from = static_cast<off_t>(file_sent_);
    const ssize_t size = ::sendfile(socket.get(), file_.get(), &from,
                                    std::min<uint64_t>(room, file_size_ - file_sent_));
    if (size < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kGone;
    if (size == 0) return Progress::kGone;  // somebody has cut the file
    file_sent_ += static_cast<uint64_t>(size);
    sent += static_cast<uint64_t>(size);
    room -= static_cast<uint64_t>(size);
  }
  file_ = Descriptor();
  return Progress::kFileSent;
}

ReplicaSender::Progress ReplicaSender::pump_stream(const Backlog& backlog, std::span<char> buffer,
                                                   uint64_t& sent) {
  uint64_t room = kTurnBytes;
  while (true) {
    const auto count = backlog.read(offset, buffer);
    if (!count) return Progress::kGone;
    if (*count == 0) return Progress::kIdle;
    if (room == 0) return Progress::kMore;
    const ssize_t size = ::send(socket.get(), buffer.data(), *count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kGone;
    offset += static_cast<uint64_t>(size);
    sent += static_cast<uint64_t>(size);
    room -= std::min<uint64_t>(room, static_cast<uint64_t>(size));
  }
}

void ReplicaSender::shut_down() const {
  if (socket.is_open()) ::shutdown(socket.get(), SHUT_RDWR);
}

}  // namespace server
