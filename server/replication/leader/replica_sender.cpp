// SPDX-License-Identifier: MIT
#include "server/replication/leader/replica_sender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "server/base/metrics/work_report.h"
#include "server/base/transport/tls_stream.h"

namespace server {
namespace {

// Limit on the bytes that are sent to one replica before the other replicas are served.
constexpr uint64_t kTurnBytes = uint64_t{1} << 20;

const core::SystemClock kSendingClock;

bool is_temporary(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

ReplicaSender::ReplicaSender(std::shared_ptr<Client> its_client)
    : client(std::move(its_client)),
      socket(::fcntl(client->socket.descriptor, F_DUPFD_CLOEXEC, 0)) {}

ReplicaSender::~ReplicaSender() = default;

void ReplicaSender::send_file(core::Descriptor file, uint64_t size_bytes) {
  file_ = std::move(file);
  file_sent_ = 0;
  file_size_ = size_bytes;
  report_ = std::make_unique<WorkReport>(fmt::format("Sending a snapshot to {}", client->address),
                                         kSendingClock);
}

ReplicaSender::Progress ReplicaSender::pump(const Backlog& backlog, bool flows,
                                            std::span<char> buffer, uint64_t& sent) {
  const Progress progress = pump_all(backlog, flows, buffer, sent);
  // The TLS stream may hold bytes that were accepted but are not sent yet.
  return progress == Progress::kIdle && stream_holds_bytes_ ? Progress::kBlocked : progress;
}

ReplicaSender::Progress ReplicaSender::pump_all(const Backlog& backlog, bool flows,
                                                std::span<char> buffer, uint64_t& sent) {
  while (!outbox_.empty() || stream_holds_bytes_) {
    size_t taken = 0;
    const Progress progress = send(outbox_, sent, taken);
    outbox_.erase(0, taken);
    if (progress != Progress::kIdle) return progress;
  }
  if (file_.is_open()) return pump_file(sent);
  return flows ? pump_stream(backlog, buffer, sent) : Progress::kIdle;
}

ReplicaSender::Progress ReplicaSender::send(std::string_view bytes, uint64_t& sent, size_t& taken) {
  if (client->socket.tls != nullptr) {
    const Stream::Outcome outcome = client->socket.tls->send(bytes);
    if (outcome.status == Stream::Status::kBroken) return Progress::kGone;
    stream_holds_bytes_ = outcome.holds_bytes;
    taken = outcome.bytes;
  } else {
    const ssize_t size =
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kGone;
    taken = static_cast<size_t>(size);
  }
  sent += taken;
  return taken == bytes.size() && !stream_holds_bytes_ ? Progress::kIdle : Progress::kBlocked;
}

ReplicaSender::Progress ReplicaSender::pump_file(uint64_t& sent) {
  uint64_t room = kTurnBytes;
  while (file_sent_ < file_size_) {
    if (room == 0) return Progress::kMore;
    const uint64_t size_max = std::min<uint64_t>(room, file_size_ - file_sent_);
    size_t taken = 0;
    if (client->socket.tls != nullptr) {
      const Progress progress = send_file_piece(size_max, taken);
      if (progress == Progress::kGone || taken == 0) return progress;
    } else {
      auto from = static_cast<off_t>(file_sent_);
      const ssize_t size = ::sendfile(socket.get(), file_.get(), &from, size_max);
      if (size < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kGone;
      if (size == 0) return Progress::kGone;  // another process has truncated the file
      taken = static_cast<size_t>(size);
    }
    file_sent_ += taken;
    sent += taken;
    room -= taken;
    report_->show(double(file_sent_) / double(file_size_), [this] {
      constexpr uint64_t kMegabyte = 1'000'000;
      return fmt::format("{} of {} MB", file_sent_ / kMegabyte, file_size_ / kMegabyte);
    });
    if (stream_holds_bytes_) return Progress::kBlocked;
  }
  report_.reset();
  file_ = core::Descriptor();
  return Progress::kFileSent;
}

ReplicaSender::Progress ReplicaSender::send_file_piece(uint64_t size_max, size_t& taken) {
  std::array<char, 16384> piece;  // the buffer has the size of one TLS record
  const ssize_t size = ::pread(file_.get(), piece.data(), std::min(size_max, piece.size()),
                               static_cast<off_t>(file_sent_));
  if (size <= 0) return Progress::kGone;
  uint64_t sent = 0;  // send() sets `sent`, which is not used: the caller counts the bytes
  return send({piece.data(), static_cast<size_t>(size)}, sent, taken);
}

ReplicaSender::Progress ReplicaSender::pump_stream(const Backlog& backlog, std::span<char> buffer,
                                                   uint64_t& sent) {
  uint64_t room = kTurnBytes;
  while (true) {
    const auto count = backlog.read(offset, buffer);
    if (!count) return Progress::kGone;
    if (*count == 0) return Progress::kIdle;
    if (room == 0) return Progress::kMore;
    size_t taken = 0;
    const Progress progress = send({buffer.data(), *count}, sent, taken);
    offset += taken;
    room -= std::min<uint64_t>(room, taken);
    if (progress == Progress::kGone || taken == 0 || stream_holds_bytes_) return progress;
  }
}

void ReplicaSender::shut_down() const {
  if (socket.is_open()) ::shutdown(socket.get(), SHUT_RDWR);
}

}  // namespace server
