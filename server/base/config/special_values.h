// SPDX-License-Identifier: MIT
//
// Parsers for options with rules that no OptionKind covers. The option table refers to them.
//
// Thread-safe: the functions keep no state. Only parse_directory() accesses the file system.
#pragma once

#include <string_view>

#include "server/base/config/option.h"

namespace server {

// Reasons why a value is rejected, as in Redis.
inline constexpr std::string_view kTooManyAddresses = "Too many bind addresses specified.";
inline constexpr std::string_view kAddressesFail = "Failed to bind to specified addresses.";
inline constexpr std::string_view kPercentTooBig =
    "percentage argument must be less or equal to 100";
inline constexpr std::string_view kNoMemoryOrPercent = "argument must be a memory or percent value";
inline constexpr std::string_view kSaveAndNoSave =
    "shutdown options SAVE and NOSAVE can't be used simultaneously";
inline constexpr std::string_view kInvalidOomScores =
    "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
inline constexpr std::string_view kInvalidSavePoints =
    "Invalid save parameters: write pairs of seconds and changes, such as 3600 1 300 100";
inline constexpr std::string_view kInvalidEventClass =
    "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";

// Parses at most 16 addresses. A '-' before an address means that this machine may lack the
// address.
Parsed<Value> parse_bind(const Option& option, Words words, const std::string& current);
// Parses the path of an existing directory, and makes it absolute. Errors: the system's own text,
// as in Redis.
Parsed<Value> parse_directory(const Option& option, Words words, const std::string& current);
// Parses hz. As in Redis, a number outside 1..500 is clamped and not rejected.
Parsed<Value> parse_hz(const Option& option, Words words, const std::string& current);
// Parses bytes, or a percentage of maxmemory up to 100%. A percentage is stored as a negative
// scalar.
Parsed<Value> parse_memory_or_percent(const Option& option, Words words,
                                      const std::string& current);
// Parses the words of shutdown-on-sigint or shutdown-on-sigterm, which say how the signal ends the
// server. The scalar has one bit per word, in the order of the choices after "default".
Parsed<Value> parse_shutdown_words(const Option& option, Words words, const std::string& current);
// Parses oom-score-adj-values: three numbers from -2000 to 2000.
Parsed<Value> parse_oom_score_values(const Option& option, Words words, const std::string& current);
// Parses latency-tracking-info-percentiles: numbers from 0 to 100.
Parsed<Value> parse_percentiles(const Option& option, Words words, const std::string& current);
// Parses a file name. A slash is rejected, so that the file is inside `dir`.
Parsed<Value> parse_file_name(const Option& option, Words words, const std::string& current);
// Parses pairs of `seconds changes`, the save points, and adds them to those in `current`. An empty
// text removes all save points.
Parsed<Value> parse_save(const Option& option, Words words, const std::string& current);
std::vector<std::string> write_save(const Option& option, const std::string& text);

// Parses `host port`, or `no one`, for which the value is empty.
Parsed<Value> parse_replicaof(const Option& option, Words words, const std::string& current);
std::vector<std::string> write_replicaof(const Option& option, const std::string& text);
Parsed<Value> parse_announced_host(const Option& option, Words words, const std::string& current);
Parsed<Value> parse_cluster_name(const Option& option, Words words, const std::string& current);
Parsed<Value> parse_node_id(const Option& option, Words words, const std::string& current);

// Parses the letters of notify-keyspace-events. The scalar of the result has the EventClass bits
// that the letters select.
Parsed<Value> parse_keyspace_events(const Option& option, Words words, const std::string& current);

// These functions parse a rate between 0 and 1, with RedisBloom's error texts.
// parse_bloom_error_rate() replaces rates above 0.25 by 0.25.
Parsed<Value> parse_bloom_error_rate(const Option& option, Words words, const std::string& current);
Parsed<Value> parse_bloom_ratio(const Option& option, Words words, const std::string& current);
// Parses an integer, with RedisBloom's error text for the range.
Parsed<Value> parse_bloom_integer(const Option& option, Words words, const std::string& current);

}  // namespace server
