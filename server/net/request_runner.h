// SPDX-License-Identifier: MIT
//
// RequestRunner: parses the bytes of one client and runs its commands in batches, so that the data
// of the next commands can be prefetched. RequestBatch: the commands of one batch.
//
// The commands of an unauthenticated client are parsed one at a time, because each may be its
// login. The client is closed if its unsent replies exceed 4 KiB.
//
// Invariants: commands run in order, each exactly once. A command that is held back does not run
// until it is parsed again later. The object does not access the socket.
// Thread safety: not thread-safe. A RequestRunner belongs to one connection. A RequestBatch and a
// ReplyGate belong to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/memory/release_storage.h"
#include "protocol/request_parser.h"
#include "server/dispatch/dispatcher.h"
#include "server/net/loop/reply_gate.h"

namespace server {
class BigArgument;
}

namespace server::net {

// RequestBatch: the parsed requests of one batch. Its views point into the bytes that were parsed.
struct RequestBatch {
  struct Bounds {
    size_t words_begin = 0;  // index in `words` of the request's first word
    size_t words_end = 0;
    size_t end = 0;  // number of bytes from the start of the batch to the end of this request
  };
  std::vector<std::string_view> words;
  std::array<Bounds, kLookAheadMax> bounds;
  std::array<Request, kLookAheadMax> requests;
  size_t count = 0;  // number of elements of `bounds` and `requests` that are in use

  // Must be called when the requests are done, so that the memory of a huge request is not
  // retained.
  void release_large() {
    constexpr size_t kKeptWords = 16384;
    if (words.capacity() > kKeptWords) core::release_storage(words);
  }
};

class RequestRunner {
 public:
  // The reason why run() has stopped.
  enum class End : uint8_t {
    kNeedsInput,       // the input contains no more complete commands
    kManyReplies,      // the replies so far must be sent first
    kHeldBack,         // the next command has not run, because it must wait
    kBlocked,          // the last command has run; Progress::pending will provide its reply
    kClosesClient,     // the connection closes when the replies are sent
    kOverOutputLimit,  // the replies exceed the client's output limit
  };
  struct Progress {
    End end;
    size_t consumed_bytes;
    PendingReply pending{};  // with kBlocked, the reply that comes later
  };

  RequestRunner(Environment& environment, ThreadStatistics& counters, Session& session);

  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

  // Runs the complete commands of `data`, which starts where the last call stopped. `big` is an
  // argument of the first command if its bytes are not in `data`; usually null. The replies are
  // written to `gate`. The caller must then call ReplyGate::add(). If the replies reach
  // `reply_bytes_limit`, further bytes of the running command's replies are not stored, and no
  // other command runs.
  Progress run(std::string_view data, RequestBatch& batch, ReplyGate& gate,
               size_t reply_bytes_limit = kNoLimit, BigArgument* big = nullptr);
  // Called when all of the client's replies were sent.
  void record_all_sent() { unknown_reply_bytes_ = 0; }

  Dispatcher& dispatcher() { return dispatcher_; }
  // Returns how much of the next command has arrived. Valid after run() has returned kNeedsInput.
  protocol::RequestParser::Partial partial() const { return parser_.partial(); }

 private:
  // The wall-clock time, and the tick at which it was read.
  struct Now {
    int64_t ms;
    uint64_t ticks;
  };
  Now read_clock() const;
  Progress run_all(std::string_view data, RequestBatch& batch, ReplyGate& gate, BigArgument* big);
  // Parses the next requests of `data` into the batch.
  struct Gathered {
    protocol::RequestParser::Status last;  // result of the parser's last call for the batch
    size_t size_bytes;
  };
  Gathered gather(std::string_view data, RequestBatch& batch);
  // Runs the requests of the batch. Returns kNeedsInput if all of them have run. `big` is an
  // argument of the batch's only request, or null.
  Progress execute(RequestBatch& batch, Now& now, ReplyGate& gate, BigArgument* big);
  // Adds the bytes to the unsent replies of an unauthenticated client. Returns whether these
  // replies exceed 4 KiB.
  bool owes_too_much(size_t reply_bytes);
  // Applies limits that CONFIG SET may have changed since the client connected.
  void apply_limits();

  Environment& environment_;
  ThreadStatistics& counters_;
  Session& session_;
  Client& client_;
  Dispatcher dispatcher_;
  protocol::RequestParser parser_;
  int64_t bulk_bytes_max_ = 0;  // limit on an argument's size that the parser uses at present
  size_t reply_bytes_limit_ = kNoLimit;
  size_t unknown_reply_bytes_ = 0;  // number of unsent bytes of replies to commands before AUTH
};

}  // namespace server::net
