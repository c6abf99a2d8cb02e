// SPDX-License-Identifier: MIT
//
// ReplicaSender: the sending half of one replica's connection: short texts, then a snapshot from a
// file, then the stream.
//
// Invariants: owns a duplicate of the socket's descriptor. If the session closes its descriptor and
// a new socket gets the same number, the sender does not write to the new socket. Sends without
// blocking, and buffers only short texts. With TLS the bytes go through the session's stream, from
// which an I/O thread reads at the same time.
// Thread safety: once Leader has listed an object, only the leader's thread may use it. Any thread
// may call shut_down(), and may read `client` and `cursor` while it holds Leader's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/descriptor.h"
#include "server/replication/stream/backlog.h"
#include "server/session/client.h"
#include "server/session/output_limit.h"

namespace server {

class WorkReport;

class ReplicaSender {
 public:
  enum class Progress : uint8_t {
    kIdle,      // the kernel has accepted all pending bytes
    kBlocked,   // the socket accepts no bytes at present
    kMore,      // the limit of one call is reached, and more bytes can be sent at the next call
    kFileSent,  // the kernel has accepted all bytes of the snapshot

    // The connection has ended, or the backlog no longer has the bytes that the replica needs.
    kGone,
  };

  // Duplicates the descriptor of the session's socket. The object has no descriptor if the process
  // has reached its limit on open descriptors.
  explicit ReplicaSender(std::shared_ptr<Client> client);
  ~ReplicaSender();
  ReplicaSender(const ReplicaSender&) = delete;
  ReplicaSender& operator=(const ReplicaSender&) = delete;

  const std::shared_ptr<Client> client;
  const core::Descriptor socket;
  bool speaks_psync = true;
  std::optional<Backlog::CursorId> cursor;
  uint64_t offset = 0;  // offset of the next byte of the stream to send
  OutputLimit output_limit;
  int64_t moved_us = 0;  // time at which the socket last accepted bytes

  void say(std::string_view text) { outbox_ += text; }
  bool has_said_all() const { return outbox_.empty(); }
  // Sets the snapshot file. It is sent after the texts passed to say() and before the stream.
  void send_file(core::Descriptor file, uint64_t size_bytes);

  // Sends pending bytes. If `flows` is true, also sends the stream. `buffer` is scratch space. Adds
  // the number of sent bytes to `sent`.
  Progress pump(const Backlog& backlog, bool flows, std::span<char> buffer, uint64_t& sent);

  // Ends the connection in both directions; bytes in the kernel's buffer are still delivered.
  void shut_down() const;

 private:
  Progress pump_all(const Backlog& backlog, bool flows, std::span<char> buffer, uint64_t& sent);
  // Sends as many of the bytes as the socket accepts, and adds their number to `sent`. Returns
  // kIdle if the socket has accepted all of them.
  Progress send(std::string_view bytes, uint64_t& sent, size_t& taken);
  Progress pump_file(uint64_t& sent);
  // Sends the next piece of the snapshot's file over TLS.
  Progress send_file_piece(uint64_t size_max, size_t& taken);
  Progress pump_stream(const Backlog& backlog, std::span<char> buffer, uint64_t& sent);

  std::string outbox_;
  bool stream_holds_bytes_ = false;  // true if the TLS stream holds unsent bytes
  core::Descriptor file_;
  uint64_t file_sent_ = 0;
  uint64_t file_size_ = 0;
  std::unique_ptr<WorkReport> report_;  // progress of sending a file; null if no file is sent
};

}  // namespace server
