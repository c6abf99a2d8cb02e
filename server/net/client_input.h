// SPDX-License-Identifier: MIT
//
// ClientInput: what one client has sent of commands that are not executed yet: not complete, or
// held back.
//
// Invariants: of a client that has not logged in no more than kUnknownBytesMax are kept, and no
// more memory is taken. Thread safety: none; belongs to one connection.
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

  // How much may be read at once.
  size_t room(bool is_authenticated) const;
  // What is kept and the fresh bytes behind it: those themselves in the usual case, that nothing is
  // kept. Until the next call.
  std::string_view join(std::string_view fresh);
  // Keeps the end of what join() has returned.
  void keep(std::string_view rest, bool is_authenticated);
  void forget();

  size_t size() const { return kept_.size(); }
  // Memory that is held besides.
  size_t free_bytes() const { return kept_.capacity() - kept_.size(); }

 private:
  std::string kept_;
};

}  // namespace server::net
