// SPDX-License-Identifier: MIT
//
// run_handler: runs a command's handler. In debug builds it also checks that the handler has
// committed its changes. A command that has marked a key as changed must then journal the change.
// In addition, a write command of a client must have committed each of its keys that has changed.
//
// A change that was not journalled is lost at the next start and never reaches a replica, although
// its reply reports success.
//
// Invariants: a change by another thread is never reported as a missing commit. That thread
// journals under the key's exclusive lock, so this check sees the entry when it sees the change.
// While the journal is inactive, nothing is checked. Keys beyond the first kKeysMax and arrays of
// more than kArrayBytesMax are not compared.
// Thread safety: the thread that runs the command calls run_handler().
#pragma once

#ifndef NDEBUG
#include <array>
#endif
#include <cstddef>
#include <cstdint>

#include "server/dispatch/context.h"

namespace server {

#ifdef NDEBUG
inline void run_handler(Context& ctx) {
  ctx.command->row->handler(ctx);
}
#else
class CommitCheck {
 public:
  // Must be called before the handler. REQUIRES: the caller holds no locks, except inside EXEC.
  explicit CommitCheck(const Context& ctx);
  // Must be called after the handler. Returns false if the handler has made a change that it has
  // not committed. REQUIRES: the caller holds no locks, except inside EXEC.
  bool is_committed() const;

 private:
  static constexpr size_t kKeysMax = 8;
  static constexpr size_t kArrayBytesMax = 16384;
  using Fingerprints = std::array<uint64_t, kKeysMax>;

  // Returns whether the handler has committed every key that has changed.
  bool has_committed_changes() const;
  // Returns one fingerprint per key; 0 if the key is missing, has expired or is not compared.
  Fingerprints fingerprints() const;
  uint64_t fingerprint(const KeyRef& key) const;

  const Context& ctx_;
  const RegisteredCommand& command_;
  const Arguments args_;
  const unsigned database_;
  const bool compares_keys_;
  uint64_t appends_ = 0;
  Fingerprints before_{};
};

void run_handler(Context& ctx);
#endif

}  // namespace server
