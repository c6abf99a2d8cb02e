// SPDX-License-Identifier: MIT
//
// Defines the messages of etcd's JSON gateway. Requests are converted to the JSON text that is
// posted, and replies are parsed to values.
//
// Invariants: keys and values are any bytes; on the wire they are base64, 64-bit numbers are text
// and members with the value zero are absent. Unknown members are ignored. A known member of the
// wrong type makes the whole reply an error. Revisions and leases lie in 0 … 2^63-1.
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/ and
// https://etcd.io/docs/v3.4/learning/api/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.h"

namespace server::cluster {

// The status codes of gRPC that the client distinguishes.
enum class EtcdCode : int {
  kOk = 0,
  kUnknown = 2,
  kInvalidArgument = 3,  // etcd also returns this status for a wrong password
  kDeadlineExceeded = 4,
  kNotFound = 5,  // etcd also returns this status for a lease that does not exist
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,  // the requested revision was compacted
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,  // the authentication token has expired or is invalid
};

struct EtcdError {
  EtcdCode code = EtcdCode::kOk;
  std::string message;  // one line of text for the log

  bool operator==(const EtcdError&) const = default;
};

struct EtcdKeyValue {
  std::string key;
  std::string value;
  uint64_t mod_revision = 0;
  uint64_t lease = 0;  // the lease that the key is attached to; 0: none

  bool operator==(const EtcdKeyValue&) const = default;
};

struct EtcdRange {
  std::string key;
  std::string range_end = {};  // the first key after the range; empty: the range is `key` alone

  // Returns the range of all keys that begin with `prefix`. REQUIRES: `prefix` is not empty.
  static EtcdRange prefix(std::string_view prefix);
};

struct EtcdRangeReply {
  uint64_t revision = 0;          // the revision of the whole store when it was read
  std::vector<EtcdKeyValue> kvs;  // keys and values, sorted by key

  // Returns the key with its value; null if the reply does not contain the key.
  const EtcdKeyValue* find(std::string_view key) const;
};

struct EtcdPut {
  std::string key;
  std::string value;
  uint64_t lease = 0;
};

struct EtcdCompare {
  enum class Target { kModRevision, kCreateRevision };

  std::string key;
  Target target = Target::kModRevision;
  uint64_t equals = 0;  // expected value of the revision; 0: the key does not exist

  static EtcdCompare unchanged(std::string key, uint64_t mod_revision) {
    return {std::move(key), Target::kModRevision, mod_revision};
  }
  static EtcdCompare absent(std::string key) {
    return {std::move(key), Target::kCreateRevision, 0};
  }
};

using EtcdOperation = std::variant<EtcdPut, EtcdRange>;

// If all comparisons hold, etcd executes `success`, else `failure`. No key may be put twice.
struct EtcdTxn {
  std::vector<EtcdCompare> compares;
  std::vector<EtcdOperation> success;
  std::vector<EtcdOperation> failure = {};
};

struct EtcdTxnReply {
  std::string cluster_id;  // ID of the etcd cluster

  // The store's revision; after an executed put, also the mod_revision of its key.
  uint64_t revision = 0;
  bool succeeded = false;
  // One reply for each operation; the reply to a put has no keys.
  std::vector<EtcdRangeReply> responses;
};

struct EtcdLeaseReply {
  uint64_t lease = 0;
  uint64_t ttl_s = 0;  // remaining seconds; 0 after a keepalive if the lease no longer exists
};

struct EtcdRevokeReply {
  uint64_t revision = 0;
};

struct EtcdWatch {
  std::string key;
  std::string range_end = {};   // end of the watched range, as EtcdRange::range_end
  uint64_t start_revision = 0;  // revision of the first change to report; 0: only future changes
};

struct EtcdEvent {
  bool deleted = false;  // true for a deletion, whose `kv` has only the key and mod_revision
  EtcdKeyValue kv;

  bool operator==(const EtcdEvent&) const = default;
};

// One message of a watch.
struct EtcdWatchReply {
  uint64_t revision = 0;
  bool created = false;
  bool canceled = false;
  uint64_t compact_revision = 0;  // if not 0, etcd has compacted the changes before this revision
  std::string cancel_reason;
  std::vector<EtcdEvent> events;
};

// A larger reply is rejected. The largest value that etcd stores is 1.5 MB, which base64
// makes 2 MB.
inline constexpr size_t kEtcdReplyBytesMax = size_t{8} * 1024 * 1024;

std::string etcd_range_json(const EtcdRange& range);
std::string etcd_txn_json(const EtcdTxn& txn);
std::string etcd_grant_json(uint64_t ttl_s);
std::string etcd_lease_json(uint64_t lease);  // body of the requests that extend or revoke a lease
std::string etcd_watch_json(const EtcdWatch& watch);
std::string etcd_authenticate_json(std::string_view user, std::string_view password);

// The parse_etcd_… functions parse replies. Errors: the text is not JSON, or a member has the wrong
// type; the message names the member.
core::Result<EtcdRangeReply> parse_etcd_range(std::string_view json);
core::Result<EtcdTxnReply> parse_etcd_txn(std::string_view json);
core::Result<EtcdLeaseReply> parse_etcd_grant(std::string_view json);
core::Result<EtcdLeaseReply> parse_etcd_keep_alive(std::string_view json);
core::Result<EtcdRevokeReply> parse_etcd_revoke(std::string_view json);
core::Result<std::string> parse_etcd_token(std::string_view json);
// Parses a message of a watch. The error that ends a watch is a message, too.
core::Result<std::variant<EtcdWatchReply, EtcdError>> parse_etcd_watch(std::string_view json);

// Returns whether the code proves that etcd has refused the call without executing it. After any
// other code etcd may still execute the call later.
bool is_refusal(EtcdCode code);

// Returns the error of a reply whose status is not 200. Never fails. If the text is not a JSON
// object, the status alone determines the code: kUnauthenticated for 401, kUnavailable for 5xx,
// else kUnknown.
EtcdError parse_etcd_error(unsigned http_status, std::string_view json);

}  // namespace server::cluster
