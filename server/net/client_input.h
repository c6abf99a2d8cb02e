// SPDX-License-Identifier: MIT
//
// ClientInput: bytes that one client has sent and that are not executed yet: incomplete commands,
// and commands that are held back. RequestBatch: the commands among them that are about to run.
//
// Invariants: for a client that has not logged in, at most kUnknownBytesMax are kept and allocated.
// Thread safety: none; belongs to one connection, a batch to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/release_storage.h"
#include "server/dispatch/dispatcher.h"

namespace server::net {

class ClientInput {
 public:
  // One read batch: about 2,000 small commands; fits the second-level cache.
  static constexpr size_t kReadBytes = size_t{64} << 10;
  static constexpr size_t kUnknownBytesMax = size_t{20} << 10;

  // Size limit of one read.
  size_t room(bool is_authenticated) const;
  // The kept bytes followed by the fresh ones; without kept bytes, as usual, a view of the fresh
  // ones. Valid until the next call.
  std::string_view join(std::string_view fresh);
  // Keeps the end of the bytes that join() returned.
  void keep(std::string_view rest, bool is_authenticated);
  void forget();

  size_t size() const { return kept_.size(); }
  // Memory held beyond those bytes.
  size_t free_bytes() const { return kept_.capacity() - kept_.size(); }

 private:
  std::string kept_;
};

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

}  // namespace server::net
