// SPDX-License-Identifier: MIT
//
// EventClass: the classes of keyspace notifications, one bit per letter of notify-keyspace-events.
//
// Thread safety: constants.
// Source: redis.conf 7.0, "Event notification".
#pragma once

#include <cstdint>

namespace server {

enum EventClass : uint32_t {
  kEventsByKey = 1U << 0,    // letter K: messages to __keyspace@<db>__:<key>
  kEventsByEvent = 1U << 1,  // letter E: messages to __keyevent@<db>__:<event>
  kGenericEvents = 1U << 2,  // letter g: commands on keys of any type
  kStringEvents = 1U << 3,   // letter $: strings
  // Letter l: lists. This class and the next three are accepted, but no key here has such a type.
  kListEvents = 1U << 4,
  kSetEvents = 1U << 5,        // letter s: sets
  kHashEvents = 1U << 6,       // letter h: hashes
  kSortedSetEvents = 1U << 7,  // letter z: sorted sets
  kExpiredEvents = 1U << 8,    // letter x: expired keys
  kEvictedEvents = 1U << 9,    // letter e: evicted keys
  kStreamEvents = 1U << 10,    // letter t: streams
  kMissEvents = 1U << 11,      // letter m: missing keys
  kModuleEvents = 1U << 12,    // letter d: modules
  kNewEvents = 1U << 13,       // letter n: new keys
};

}  // namespace server
