// SPDX-License-Identifier: MIT
//
// SocketSink: writes the same bytes to several sockets, waiting for the slow ones.
//
// Invariants: a socket gets all bytes in order or is shut down. A socket is shut down if its peer
// has disconnected, or if it accepts no byte for `timeout_s`. It is also shut down if it delays the
// other sockets by half of `timeout_s`. The other sockets receive nothing during a delay, and their
// peers may have the same timeout. After the shutdown, the write continues with the other sockets.
// Only the piece that is being written is buffered.
// Thread safety: used by the single thread of a forked child. The parent shares the sockets, so it
// notices when the child shuts one down.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "persistence/bytes/byte_stream.h"

namespace server {

class SocketSink final : public persistence::ByteSink {
 public:
  // `descriptors` are the descriptors of non-blocking sockets.
  SocketSink(const std::vector<int>& descriptors, int64_t timeout_s, const core::Clock& clock);

  // Writes the bytes to all sockets. Errors: no socket is left.
  core::Result<> write(std::string_view bytes) override;

  size_t count() const { return receivers_.size(); }

 private:
  struct Receiver {
    int descriptor;
    size_t sent = 0;  // number of sent bytes of the piece that is being written
    int64_t moved_us = 0;
    bool is_gone = false;
  };
  void send(Receiver& receiver, std::string_view bytes);
  // Shuts down the sockets that are too slow with the present piece. `size` is the size of the
  // piece, and `begun_us` is the time at which its write began.
  void drop_slow(size_t size, int64_t begun_us);
  static void shut_out(Receiver& receiver);
  void await_room(size_t size);

  std::vector<Receiver> receivers_;
  const int64_t timeout_us_;
  const core::Clock& clock_;
};

}  // namespace server
