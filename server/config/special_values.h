// SPDX-License-Identifier: MIT
//
// Parsers for the options whose rules no OptionKind covers; the option table points at them.
//
// Thread safety: free functions; parse_directory asks the file system, the others nothing.
#pragma once

#include "server/config/option.h"

namespace server {

// At most 16 addresses; '-' before one means that it may be missing on this machine.
Parsed<Value> parse_bind(const Option& option, Words words, const std::string& current);
// An existing directory, made absolute. Errors: the system's own text, as in Redis.
Parsed<Value> parse_directory(const Option& option, Words words, const std::string& current);
// Clamped to 1..500 instead of rejected, as Redis does.
Parsed<Value> parse_hz(const Option& option, Words words, const std::string& current);
// Bytes, or up to 100% of maxmemory: then the scalar is the percentage below zero.
Parsed<Value> parse_memory_or_percent(const Option& option, Words words,
                                      const std::string& current);
// Words that say how a signal ends the server. The scalar has their bits, in the order of the
// choices after "default".
Parsed<Value> parse_shutdown_words(const Option& option, Words words, const std::string& current);
// Three numbers from -2000 to 2000.
Parsed<Value> parse_oom_score_values(const Option& option, Words words, const std::string& current);
// Numbers from 0 to 100.
Parsed<Value> parse_percentiles(const Option& option, Words words, const std::string& current);
// A name without a slash, so that no file outside `dir` can be meant.
Parsed<Value> parse_file_name(const Option& option, Words words, const std::string& current);
// `seconds changes` pairs that add to `current`; "" forgets all of them.
Parsed<Value> parse_save(const Option& option, Words words, const std::string& current);
std::vector<std::string> write_save(const Option& option, const std::string& text);

// `host port`, or `no one`, whose value is empty.
Parsed<Value> parse_replicaof(const Option& option, Words words, const std::string& current);
std::vector<std::string> write_replicaof(const Option& option, const std::string& text);
Parsed<Value> parse_announced_host(const Option& option, Words words, const std::string& current);
Parsed<Value> parse_cluster_name(const Option& option, Words words, const std::string& current);
Parsed<Value> parse_node_id(const Option& option, Words words, const std::string& current);

// Redis' letters of event classes; the scalar has their EventClass bits.
Parsed<Value> parse_keyspace_events(const Option& option, Words words, const std::string& current);

// 0 < rate < 1, with RedisBloom's texts; the first also lowers what exceeds 0.25 to 0.25.
Parsed<Value> parse_bloom_error_rate(const Option& option, Words words, const std::string& current);
Parsed<Value> parse_bloom_ratio(const Option& option, Words words, const std::string& current);
// An integer with RedisBloom's text for the range.
Parsed<Value> parse_bloom_integer(const Option& option, Words words, const std::string& current);

}  // namespace server
