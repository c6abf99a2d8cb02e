// SPDX-License-Identifier: MIT
//
// Defines the versions of Redis and RedisBloom that this server reports. Clients use some features
// only if the reported version is new enough. redis-py and jedis need at least Redis 7.4.0. Test
// suites and GUIs need RedisBloom 2.8.20. BLOOMERY_VERSION is the version of this server.
//
// Thread safety: constants.
#pragma once

#include <cstdint>
#include <string_view>

namespace server {

inline constexpr std::string_view kCompatibleRedisVersion = "7.4.0";
inline constexpr int64_t kCompatibleModuleVersion = 20820;

}  // namespace server
