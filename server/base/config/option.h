// SPDX-License-Identifier: MIT
//
// Option: one row of the option table, which determines parsing, CONFIG GET, SET and REWRITE.
// Directive: a line of a configuration file, which may set an option.
//
// Invariants: names and aliases are lower case and unique over the table; the row's parser accepts
// `default_text` and returns it unchanged.
// Thread-safe: a row does not change after it was built.
// Source: redis.conf 7.0; conf/bloomery.conf explains every option to users.
#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace server {

// Limits of numeric options. Most options of redis.conf have the limits of int32_t, because Redis
// stores them as `int`.
inline constexpr int64_t kInt32Min = std::numeric_limits<int32_t>::min();
inline constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kUint32Max = std::numeric_limits<uint32_t>::max();
inline constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

// The options that conf/bloomery.conf has, in the order of the table's first rows. The server reads
// them, except bf.bloom-defrag-enabled and bf.bloom_large_item_threshold.
enum class OptionId : uint8_t {
  kBind,
  kPort,
  kUnixSocket,
  kUnixSocketPerm,
  kUnixSocketGroup,
  kTimeout,
  kTcpKeepalive,
  kTcpBacklog,
  kMaxClients,
  kMaxNewConnections,
  kMaxNewTlsConnections,
  kIoThreads,
  kProtectedMode,
  kRequirePass,
  kAclFile,
  kAclLogMaxLen,
  kAclPubsubDefault,
  kEnableProtectedConfigs,
  kProtoMaxBulkLen,
  kClientQueryBufferLimit,
  kClientOutputBufferLimit,
  kMaxMemory,
  kMaxMemoryPolicy,
  kMaxMemorySamples,
  kMaxMemoryEvictionTenacity,
  kActiveExpireEffort,
  kLfuLogFactor,
  kLfuDecayTime,
  kReplicaIgnoreMaxMemory,
  kMaxMemoryClients,
  kFilterHugePages,
  kLogLevel,
  kLogFile,
  kPidFile,
  kDir,
  kDatabases,
  kHz,
  kDaemonize,
  kSupervised,
  kAvailabilityZone,
  kSave,
  kAppendOnly,
  kAppendFsync,
  kAppendDirName,
  kAppendFileName,
  kAofLoadTruncated,
  kAofUseRdbPreamble,
  kAofTimestampEnabled,
  kAutoAofRewritePercentage,
  kAutoAofRewriteMinSize,
  kNoAppendFsyncOnRewrite,
  kDbFileName,
  kRdbCompression,
  kRdbChecksum,
  kRdbForeignTypes,
  kStopWritesOnBgsaveError,
  kEnableDebugCommand,
  kNotifyKeyspaceEvents,
  kTrackingTableMaxKeys,
  kReplicaOf,
  kMasterAuth,
  kMasterUser,
  kReplicaReadOnly,
  kReplicaServeStaleData,
  kReplicaPriority,
  kReplicaAnnounced,
  kReplicaAnnounceIp,
  kReplicaAnnouncePort,
  kReplicaForeign,
  kReplDisklessSync,
  kReplDisklessSyncDelay,
  kReplDisklessSyncMaxReplicas,
  kReplPingReplicaPeriod,
  kReplTimeout,
  kReplBacklogSize,
  kReplBacklogTtl,
  kReplDisableTcpNodelay,
  kMinReplicasToWrite,
  kMinReplicasMaxLag,
  kReplicaMaxStaleness,
  kShutdownTimeout,
  kClusterEnabled,
  kClusterAnnounceIp,
  kClusterAnnouncePort,
  kClusterAnnounceTlsPort,
  kClusterAnnounceHostname,
  kClusterPreferredEndpointType,
  kClusterWriteAcks,
  kClusterNodeTimeout,
  kClusterAllowReadsWhenDown,
  kClusterEtcd,
  kClusterEtcdUser,
  kClusterEtcdPassword,
  kClusterEtcdCaFile,
  kClusterEtcdCertFile,
  kClusterEtcdKeyFile,
  kClusterName,
  kClusterNodeId,
  kSlowlogLogSlowerThan,
  kSlowlogMaxLen,
  kLatencyMonitorThreshold,
  kLatencyTracking,
  kLatencyTrackingInfoPercentiles,
  kTlsPort,
  kTlsReplication,
  kTlsAuthClients,
  kTlsCertFile,
  kTlsKeyFile,
  kTlsKeyFilePass,
  kTlsClientCertFile,
  kTlsClientKeyFile,
  kTlsClientKeyFilePass,
  kTlsCaCertFile,
  kTlsCaCertDir,
  kTlsDhParamsFile,
  kTlsProtocols,
  kTlsCiphers,
  kTlsCipherSuites,
  kTlsPreferServerCiphers,
  kTlsSessionCaching,
  kTlsSessionCacheSize,
  kTlsSessionCacheTimeout,
  kHttpPort,
  kHttpBind,
  kHttpTls,
  kHttpReadyMaxLag,
  kBloomErrorRate,
  kBloomInitialSize,
  kBloomExpansionFactor,
  kBloomTighteningRatio,
  kBloomLayout,
  kBloomNativeVersion,
  kBloomExistsMissingKey,
  kBloomMemoryUsageLimit,
  kBloomMaxFilters,
  kBloomUseRandomSeed,
  kBloomDefragEnabled,
  kBloomLargeItemThreshold,
  kShutdownOnSigint,
  kShutdownOnSigterm,
  kBindSourceAddr,
  kRdbKeySaveDelay,
  kKeyLoadDelay,
  kWatchdogPeriod,
  kCount,
};
inline constexpr size_t kOptionIdCount = static_cast<size_t>(OptionId::kCount);

enum class ClientClass : uint8_t { kNormal, kReplica, kPubSub };
inline constexpr size_t kClientClassCount = 3;

// Directive: a line of a configuration file or of the command line.
struct Directive {
  std::string source{};  // path of the file, "standard input" or "the command line"
  size_t line = 0;       // line number, counted from 1
  std::string text{};    // text of the line, without spaces around it
  std::vector<std::string> words{};
};

// BufferLimit: the limits on one client's unsent replies. The client is closed above hard_bytes, or
// after soft_seconds above soft_bytes. 0 means no limit.
struct BufferLimit {
  int64_t hard_bytes = 0;
  int64_t soft_bytes = 0;
  int64_t soft_seconds = 0;

  bool operator==(const BufferLimit&) const = default;
};

enum class OptionKind : uint8_t { kBool, kInteger, kMemory, kOctal, kFloat, kEnum, kString, kList };

enum class Mutability : uint8_t {
  kMutable,
  kImmutable,
  kProtected,  // CONFIG SET changes the option if enable-protected-configs allows it
  kWithHook,   // CONFIG SET changes the option only if a hook that applies it is registered
};

// A value in canonical form: the text that CONFIG GET shows, and a number. The number is 0/1 for a
// bool, the index for an enum, the bits for a double, and 0 for strings and lists.
struct Value {
  std::string text;
  int64_t scalar = 0;
};

// The reason why a value was rejected, without the prefix that CONFIG SET or the file reader adds.
struct Refusal {
  std::string reason;
};

template <class T>
using Parsed = boost::system::result<T, Refusal>;

[[noreturn]] inline void throw_exception_from_error(const Refusal& refusal,
                                                    const boost::source_location&) {
  throw std::logic_error("unchecked refusal: " + refusal.reason);
}

struct Option;
using Words = std::span<const std::string>;
// Parses the words of a value. `current` is the present value: some options add the new words to it
// instead of replacing it.
using ValueParser = Parsed<Value> (*)(const Option&, Words, const std::string& current);
// Returns the lines of a configuration file that set the value `text`.
using LineWriter = std::vector<std::string> (*)(const Option&, const std::string& text);

struct Option {
  std::string_view name{};
  std::vector<std::string_view> aliases{};
  OptionKind kind = OptionKind::kString;
  std::string default_text{};
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  // The words of an option of kind kEnum, in the order of the C++ enum.
  std::vector<std::string_view> choices{};
  Mutability mutability = Mutability::kMutable;
  bool multi_argument = false;
  bool may_be_bare = false;  // the option's line may omit the value

  // True for an option for tests. CONFIG GET shows the option only by its full name, and CONFIG SET
  // changes it only for clients that may use DEBUG.
  bool hidden = false;
  bool accumulates = false;  // a repeated line adds to earlier lines instead of replacing them
  bool sensitive = false;    // the value is a secret: messages and logs must not show it
  bool reloads = false;      // CONFIG SET applies the option even if its value does not change

  // True for an option of Redis that is stored for CONFIG GET but has no effect here.
  bool inert = false;
  ValueParser parser = nullptr;  // parser that replaces the one of the option's kind
  LineWriter line_writer = nullptr;
};

}  // namespace server
