// SPDX-License-Identifier: MIT
//
// When a snapshot or a new base of the append log is due, and when a failed one is tried again.
//
// Thread safety: pure functions. Source: Redis 7.0.15's serverCron() and rewrite delays.
#pragma once

#include <cstdint>
#include <string_view>

namespace server {

// Whether one of the `save` option's points is reached: pairs of seconds and changes.
bool save_point_is_reached(std::string_view points, uint64_t changes, int64_t elapsed_s);

// Whether the append log has grown by `percentage` of what it was after its last rewrite, and is of
// `least_bytes` at least. A percentage of 0 means never.
bool log_has_outgrown(uint64_t size_bytes, uint64_t base_bytes, uint64_t percentage,
                      uint64_t least_bytes);

// How long to wait before the next rewrite after so many failures in a row.
int64_t rewrite_delay_us(uint64_t failures);

}  // namespace server
