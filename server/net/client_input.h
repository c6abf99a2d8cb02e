// SPDX-License-Identifier: MIT
//
// ClientInput: bytes that one client has sent and that are not executed yet: incomplete commands,
// and commands that are held back.
//
// Invariants: for a client that has not logged in, at most kUnknownBytesMax are kept and allocated.
// Thread safety: none; belongs to one connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace server::net
