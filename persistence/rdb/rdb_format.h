// SPDX-License-Identifier: MIT
//
// Defines the constants of the snapshot format that its writer and its reader share.
//
// Thread safety: constants.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace persistence::rdb {

inline constexpr std::string_view kMagic = "REDIS";
inline constexpr std::string_view kValkeyMagic = "VALKEY";
// The size of the header, which is the magic and the version: REDIS0010, VALKEY080.
inline constexpr size_t kHeaderBytes = 9;
// The snapshot version of Redis 7.0. Redis 7, later releases and Valkey accept this version.
inline constexpr unsigned kWrittenVersion = 10;
// The snapshot version of Redis 5.0, which is the oldest version with idle times and frequencies of
// use.
inline constexpr unsigned kOldestWrittenVersion = 9;
// Snapshots end with a checksum from version 5 on.
inline constexpr unsigned kFirstVersionWithSum = 5;
// The first snapshot version of Valkey. From this version on, type ids have other meanings than in
// Redis.
inline constexpr unsigned kFirstValkeyVersion = 80;

// The opcodes of a snapshot.
inline constexpr uint8_t kEnd = 255;
inline constexpr uint8_t kSelectDatabase = 254;
inline constexpr uint8_t kExpirySeconds = 253;
inline constexpr uint8_t kExpiryMilliseconds = 252;
inline constexpr uint8_t kResizeDatabase = 251;
inline constexpr uint8_t kAux = 250;
inline constexpr uint8_t kFrequency = 249;
inline constexpr uint8_t kIdle = 248;
inline constexpr uint8_t kModuleAux = 247;
inline constexpr uint8_t kFunction = 245;
inline constexpr uint8_t kSlotInfo = 244;
// Opcode 243 introduces metadata of a key in Redis, and an import of slots in Valkey.
inline constexpr uint8_t kKeyMetaOrSlotImport = 243;
// Opcode 242 introduces the fields of a hash template in Redis. In Valkey it introduces a command
// that was executed while a snapshot was saved without a fork.
inline constexpr uint8_t kHashTemplateOrUpdate = 242;

// The names of AUX fields.
inline constexpr std::string_view kServerVersionAux = "redis-ver";
inline constexpr std::string_view kBitsAux = "redis-bits";
inline constexpr std::string_view kTimeAux = "ctime";
inline constexpr std::string_view kUsedMemoryAux = "used-mem";
inline constexpr std::string_view kAofBaseAux = "aof-base";
inline constexpr std::string_view kStreamDatabaseAux = "repl-stream-db";
inline constexpr std::string_view kReplicationIdAux = "repl-id";
inline constexpr std::string_view kReplicationOffsetAux = "repl-offset";
// The AUX field `bloomery-ver` marks the snapshots of Bloomery. In the journal after such a
// snapshot, each add command lists only items that changed the filter. So replay counts these items
// without looking them up.
inline constexpr std::string_view kBloomeryVersionAux = "bloomery-ver";
// The AUX field `bloomery-foreign-stream` is "1" if the replication stream after the snapshot comes
// from another kind of server.
inline constexpr std::string_view kForeignStreamAux = "bloomery-foreign-stream";
inline constexpr std::string_view kAheadAux = "bloomery-ahead";

}  // namespace persistence::rdb
