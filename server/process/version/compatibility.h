// SPDX-License-Identifier: MIT
//
// The versions that clients see, so that they use our features. redis-py and jedis ask for at least
// 7.4.0, test suites and GUIs for RedisBloom 2.8.20. Our own version is BLOOMERY_VERSION.
#pragma once

#include <cstdint>
#include <string_view>

namespace server {

inline constexpr std::string_view kCompatibleRedisVersion = "7.4.0";
inline constexpr int64_t kCompatibleModuleVersion = 20820;

}  // namespace server
