// SPDX-License-Identifier: MIT
//
// EventClass: the classes of keyspace notifications, one bit per letter of notify-keyspace-events.
//
// Thread-safe: the file defines only constants.
// Source: redis.conf 7.0, "Event notification".
#pragma once

#include <cstdint>

namespace server {

enum EventClass : uint32_t {
  kEventsByKey = 1U << 0,    // letter K selects messages to __keyspace@<db>__:<key>
  kEventsByEvent = 1U << 1,  // letter E selects messages to __keyevent@<db>__:<event>
  kGenericEvents = 1U << 2,  // letter g selects commands on keys of any type
  kStringEvents = 1U << 3,   // letter $ selects commands on strings

  // Letter l selects commands on lists. This class, the next three and kStreamEvents are accepted,
  // but no key here has such a type.
  kListEvents = 1U << 4,
  kSetEvents = 1U << 5,        // letter s selects commands on sets
  kHashEvents = 1U << 6,       // letter h selects commands on hashes
  kSortedSetEvents = 1U << 7,  // letter z selects commands on sorted sets
  kExpiredEvents = 1U << 8,    // letter x selects the expiry of keys
  kEvictedEvents = 1U << 9,    // letter e selects the eviction of keys
  kStreamEvents = 1U << 10,    // letter t selects commands on streams
  kMissEvents = 1U << 11,      // letter m selects lookups of missing keys
  kModuleEvents = 1U << 12,    // letter d selects events of modules
  kNewEvents = 1U << 13,       // letter n selects the creation of keys
};

}  // namespace server
