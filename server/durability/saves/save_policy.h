// SPDX-License-Identifier: MIT
//
// Decides when a snapshot or a new base of the append log is due, and when a failed one is retried.
//
// Thread-safe: the functions keep no state.
// Source: Redis 7.0.15's serverCron() and rewrite delays.
#pragma once

#include <cstdint>
#include <string_view>

namespace server {

// Returns whether one of the `save` option's points is reached. A point is a pair of seconds and
// changes.
bool save_point_is_reached(std::string_view points, uint64_t changes, int64_t elapsed_s);

// Returns whether the append log has at least `least_bytes` and has grown enough. It must have
// grown by `percentage` percent of its size after the last rewrite or start. A percentage of 0
// means never.
bool log_has_outgrown(uint64_t size_bytes, uint64_t base_bytes, uint64_t percentage,
                      uint64_t least_bytes);

// Returns the delay before the next rewrite after `failures` failures in a row.
int64_t rewrite_delay_us(uint64_t failures);

}  // namespace server
