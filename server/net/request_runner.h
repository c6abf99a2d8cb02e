// SPDX-License-Identifier: MIT
//
// RequestRunner: parses the bytes of one client and runs its commands, a batch at a time, so that
// the next commands' data can be prefetched. RequestBatch: the commands that are about to run.
//
// A client that has not logged in is parsed one command at a time, since that may be its login. It
// is closed when its replies exceed a few KiB.
//
// Invariants: commands run in order, each once, unless it is held back; then it is parsed and run
// again later. Knows no socket.
// Thread safety: none; belongs to one connection, a batch and a gate to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/release_storage.h"
#include "protocol/request_parser.h"
#include "server/dispatch/dispatcher.h"
#include "server/loop/reply_gate.h"

namespace server {
class BigArgument;
}

namespace server::net {

// The views are into the bytes that the requests were parsed from.
struct RequestBatch {
  struct Bounds {
    size_t words_begin = 0;  // in `words`
    size_t words_end = 0;
    size_t end = 0;  // bytes from the start of the batch to the end of this request
  };
  std::vector<std::string_view> words;
  std::array<Bounds, Dispatcher::kLookAheadMax> bounds;
  std::array<Request, Dispatcher::kLookAheadMax> requests;
  size_t count = 0;  // of both

  // To be called when the requests are done: a huge one must not hold its megabytes.
  void release_large() {
    constexpr size_t kKeptWords = 16384;
    if (words.capacity() > kKeptWords) core::release_storage(words);
  }
};

class RequestRunner {
 public:
  // Why it has stopped.
  enum class End : uint8_t {
    kNeedsInput,       // nothing complete is left
    kManyReplies,      // those so far should leave first
    kHeldBack,         // the next command must wait, and has not run
    kBlocked,          // the last one waits: Session::awaited
    kClosesClient,     // when the replies are sent
    kOverOutputLimit,  // the replies are more than the client may have
  };
  struct Progress {
    End end;
    size_t consumed_bytes;
  };

  RequestRunner(Environment& environment, ThreadStatistics& counters, Session& session);
  RequestRunner(const RequestRunner&) = delete;
  RequestRunner& operator=(const RequestRunner&) = delete;

  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

  // Runs the complete commands of `data`, which begins where the last call has stopped consuming.
  // `big`: an argument of the first of them whose bytes are apart; null as a rule.
  // The replies go to the gate; ReplyGate::add() is left to the caller. A command whose replies
  // reach `reply_bytes_limit` goes on to its end without storing them, and is the last one.
  Progress run(std::string_view data, RequestBatch& batch, ReplyGate& gate,
               size_t reply_bytes_limit = kNoLimit, BigArgument* big = nullptr);
  // The client has taken all replies.
  void record_all_sent() { unknown_reply_bytes_ = 0; }

  Dispatcher& dispatcher() { return dispatcher_; }
  // Returns how much of the next command has arrived, when run() has ended with kNeedsInput.
  protocol::RequestParser::Partial partial() const { return parser_.partial(); }

 private:
  Progress run_all(std::string_view data, RequestBatch& batch, ReplyGate& gate);
  // Parses the next requests of `data` into the batch.
  struct Gathered {
    protocol::RequestParser::Status last;  // which ended the batch
    size_t size_bytes;
  };
  Gathered gather(std::string_view data, RequestBatch& batch);
  // kNeedsInput: all have run.
  Progress execute(RequestBatch& batch, int64_t now_ms, ReplyGate& gate);
  // Whether a client that has not logged in gets more replies than it may have.
  bool owes_too_much(size_t reply_bytes);
  // CONFIG SET reaches clients that are already there.
  void apply_limits();

  Environment& environment_;
  ThreadStatistics& counters_;
  Session& session_;
  Dispatcher dispatcher_;
  protocol::RequestParser parser_;
  int64_t bulk_bytes_max_ = 0;  // the limit that parser_ has
  size_t reply_bytes_limit_ = kNoLimit;
  size_t unknown_reply_bytes_ = 0;  // unsent ones to commands before AUTH
};

}  // namespace server::net
