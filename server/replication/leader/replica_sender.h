// SPDX-License-Identifier: MIT
//
// ReplicaSender: the sending half of one replica's connection: short texts, then a snapshot from a
// file, then the stream.
//
// Invariants: owns a duplicate of the socket's descriptor, so that it never writes to a reused
// number. Sends without blocking; it buffers only short texts. With TLS the bytes go through the
// session's stream, from which an I/O thread reads meanwhile.
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
    kIdle,      // all bytes were handed to the kernel
    kBlocked,   // the socket would block
    kMore,      // there is more to send after the others were served
    kFileSent,  // the last byte of the snapshot was handed to the kernel
    kGone,      // the peer, or the bytes that it needs, are gone
  };

  // Duplicates the descriptor of the session's socket. Has none if the process has none left.
  explicit ReplicaSender(std::shared_ptr<Session> session);
  ~ReplicaSender();
  ReplicaSender(const ReplicaSender&) = delete;
  ReplicaSender& operator=(const ReplicaSender&) = delete;

  const std::shared_ptr<Session> session;
  const Descriptor socket;
  bool speaks_psync = true;
  std::optional<Backlog::CursorId> cursor;
  uint64_t offset = 0;  // next byte of the stream
  OutputLimit output_limit;
  int64_t moved_us = 0;  // last time the socket accepted bytes

  void say(std::string_view text) { outbox_ += text; }
  bool has_said_all() const { return outbox_.empty(); }
  // Append texts and the snapshot that precede the stream.
  void send_file(Descriptor file, uint64_t size_bytes);

  // Sends pending bytes, and the stream if `flows`. `buffer` is scratch space. Adds to `sent`.
  Progress pump(const Backlog& backlog, bool flows, std::span<char> buffer, uint64_t& sent);

  // Ends the connection in both directions; bytes in the kernel's buffer are still delivered.
  void shut_down() const;

 private:
  Progress pump_all(const Backlog& backlog, bool flows, std::span<char> buffer, uint64_t& sent);
  // Sends as many of the bytes as the socket accepts, and adds to `sent`. kIdle means all of them.
  Progress send(std::string_view bytes, uint64_t& sent, size_t& taken);
  Progress pump_file(uint64_t& sent);
  // Sends the next piece of the file, encrypted.
  Progress send_file_piece(uint64_t size_max, size_t& taken);
  Progress pump_stream(const Backlog& backlog, std::span<char> buffer, uint64_t& sent);

  std::string outbox_;
  bool stream_holds_bytes_ = false;  // whether the TLS stream holds unsent bytes
  Descriptor file_;
  uint64_t file_sent_ = 0;
  uint64_t file_size_ = 0;
  std::unique_ptr<WorkReport> report_;  // set while a file is sent
};

}  // namespace server
