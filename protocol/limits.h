// SPDX-License-Identifier: MIT
//
// Limits: the maximum sizes and counts that a peer may announce.
//
// Invariants: a limit bounds the accepted size, never the reserved memory. The parsers allocate
// memory only for bytes that have arrived.
// Thread safety: concurrent reads of a value are safe.
// Source: Redis 7 (proto-max-bulk-len and the checks for CVE-2021-32675), measured on 7.0.15.
#pragma once

#include <cstddef>
#include <cstdint>

namespace protocol {

struct Limits {
  // The maximum size of a bulk string. The value is that of Redis' proto-max-bulk-len.
  size_t bulk_size_max_bytes = size_t{512} * 1024 * 1024;
  // The maximum number of arguments of a request, and of elements of one aggregate reply. Redis 7
  // allows INT_MAX.
  size_t argument_count_max = INT32_MAX;
  // The maximum length of an inline request, and of a header line such as "*3".
  size_t inline_size_max_bytes = size_t{64} * 1024;
  // The maximum nesting depth of the aggregates of a reply.
  size_t reply_depth_max = 64;
  // The limits before a client has authenticated. They suffice for AUTH and HELLO.
  size_t unauthenticated_argument_count_max = 10;
  size_t unauthenticated_bulk_size_max_bytes = size_t{16} * 1024;
};

}  // namespace protocol
