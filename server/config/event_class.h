// SPDX-License-Identifier: MIT
//
// EventClass: the classes of keyspace notifications, a bit each, as notify-keyspace-events names
// them.
//
// Thread safety: constants.
// Source: redis.conf 7.0, "Event notification".
#pragma once

#include <cstdint>

namespace server {

enum EventClass : uint32_t {
  kEventsByKey = 1U << 0,      // K: messages to __keyspace@<db>__:<key>
  kEventsByEvent = 1U << 1,    // E: messages to __keyevent@<db>__:<event>
  kGenericEvents = 1U << 2,    // g
  kStringEvents = 1U << 3,     // $
  kListEvents = 1U << 4,       // l, as the three below: the option has them, no key here does
  kSetEvents = 1U << 5,        // s
  kHashEvents = 1U << 6,       // h
  kSortedSetEvents = 1U << 7,  // z
  kExpiredEvents = 1U << 8,    // x
  kEvictedEvents = 1U << 9,    // e
  kStreamEvents = 1U << 10,    // t
  kMissEvents = 1U << 11,      // m
  kModuleEvents = 1U << 12,    // d
  kNewEvents = 1U << 13,       // n
};

}  // namespace server
