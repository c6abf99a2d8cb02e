// SPDX-License-Identifier: MIT
//
// Limits: how much a peer may announce before it is refused.
//
// Invariants: a limit bounds what is accepted, never what is reserved: the parsers take memory
// only for bytes that have arrived.
// Thread safety: values.
// Source: Redis 7 (proto-max-bulk-len and the checks behind CVE-2021-32675), measured on 7.0.15.
#pragma once

#include <cstddef>
#include <cstdint>

namespace protocol {

struct Limits {
  // Largest bulk string; Redis calls it proto-max-bulk-len.
  size_t bulk_size_max_bytes = size_t{512} * 1024 * 1024;
  // Most arguments of a request, and most elements of one aggregate reply. Redis 7 has INT_MAX.
  size_t argument_count_max = INT32_MAX;
  // Longest line: an inline request, or a length that never ends.
  size_t inline_size_max_bytes = size_t{64} * 1024;
  // How deep the aggregates of a reply may nest.
  size_t reply_depth_max = 64;
  // What a client may send before it has logged in: enough for AUTH and HELLO.
  size_t unauthenticated_argument_count_max = 10;
  size_t unauthenticated_bulk_size_max_bytes = size_t{16} * 1024;
};

}  // namespace protocol
