// SPDX-License-Identifier: MIT
//
// ReplicaSender: the sending half of one replica's connection: short texts, then a snapshot from a
// file, then the stream.
//
// Invariants: has a descriptor of its own for the client's socket, so that the number of a closed
// one is never written to. Sends without blocking; it buffers only short texts. With TLS the bytes
// go by way of the session's stream, which an I/O thread reads meanwhile.
// Thread safety: belongs to the leader's thread once it is listed there; shut_down() may be called
// by any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "persistence/files/open_file.h"
#include "server/replication/stream/backlog.h"
#include "server/session/output_limit.h"
#include "server/session/session.h"

namespace server {

class WorkReport;

using persistence::Descriptor;

class ReplicaSender {
 public:
  enum class Progress : uint8_t {
    kIdle,      // all that there is has been handed to the kernel
    kBlocked,   // the socket takes no more
    kMore,      // there is more to send, but others must have their turn
    kFileSent,  // the last byte of the snapshot has been handed over
    kGone,      // the other end, or the bytes that it needs
  };

  // Has a second descriptor of the session's socket, unless there are none left.
  explicit ReplicaSender(std::shared_ptr<Session> session);
  ~ReplicaSender();
  ReplicaSender(const ReplicaSender&) = delete;
  ReplicaSender& operator=(const ReplicaSender&) = delete;

  const std::shared_ptr<Session> session;
  const Descriptor socket;
  bool speaks_psync = true;
  std::optional<Backlog::CursorId> cursor;
  uint64_t offset = 0;  // of the next byte of the stream
  OutputLimit output_limit;
  int64_t moved_us = 0;  // when the socket took something last

  void say(std::string_view text) { outbox_ += text; }
  bool has_said_all() const { return outbox_.empty(); }
  // The texts and the snapshot that precede the stream.
  void send_file(Descriptor file, uint64_t size_bytes);

  // Sends what is there, the stream only if it `flows`; `buffer` is scratch. Adds to `sent`.
  Progress pump(const Backlog& backlog, bool flows, std::span<char> buffer, uint64_t& sent);

  // Ends the connection in both directions; bytes in the kernel's buffer are still delivered.
  void shut_down() const;

 private:
  Progress pump_all(const Backlog& backlog, bool flows, std::span<char> buffer, uint64_t& sent);
  // Sends what the socket takes of the bytes, and adds to `sent`; kIdle means all of them.
  Progress send(std::string_view bytes, uint64_t& sent, size_t& taken);
  Progress pump_file(uint64_t& sent);
  // The file's next piece, encrypted.
  Progress send_file_piece(uint64_t size_max, size_t& taken);
  Progress pump_stream(const Backlog& backlog, std::span<char> buffer, uint64_t& sent);

  std::string outbox_;
  bool stream_holds_bytes_ = false;  // that were sent
  Descriptor file_;
  uint64_t file_sent_ = 0;
  uint64_t file_size_ = 0;
  std::unique_ptr<WorkReport> report_;  // while there is a file
};

}  // namespace server
