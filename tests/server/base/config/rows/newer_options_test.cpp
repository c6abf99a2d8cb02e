// SPDX-License-Identifier: MIT
//
// Tests that the server accepts the names of all options of released versions of Redis and Valkey,
// and the lines of their sample configuration files.
#include <fmt/format.h>

#include <sstream>

#include "server/base/config/config.h"
#include "server/base/config/option_table.h"
#include "server/base/config/value.h"
#include "tests/server/base/config/config_fixture.h"

namespace server {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Options of Redis 6.2 to 8.10 and of Valkey 7.2 to 9.2, without their test options.
constexpr std::string_view kReleasedNames = R"(
acl-pubsub-default aclfile acllog-max-len active-defrag-cycle-max active-defrag-cycle-min
active-defrag-cycle-us active-defrag-ignore-bytes active-defrag-max-scan-fields
active-defrag-threshold-lower active-defrag-threshold-upper active-expire-effort activedefrag
activerehashing always-show-logo aof-disable-auto-gc aof-load-corrupt-tail-max-size
aof-load-truncated aof-rewrite-cpulist aof-rewrite-incremental-fsync aof-timestamp-enabled
aof-use-rdb-preamble aof_rewrite_cpulist appenddirname appendfilename appendfsync appendonly
array-slice-size array-sparse-kmax array-sparse-kmin auto-aof-rewrite-min-size
auto-aof-rewrite-percentage auto-failover-on-shutdown availability-zone backup-sealed-ttl
backupdirname bgsave-cpulist bgsave_cpulist bind bind-source-addr bio-cpulist bio_cpulist
busy-reply-threshold client-default-resp client-output-buffer-limit client-query-buffer-limit
cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down
cluster-allow-replica-migration cluster-announce-bus-port cluster-announce-client-ipv4
cluster-announce-client-ipv6 cluster-announce-client-port cluster-announce-client-tls-port
cluster-announce-hostname cluster-announce-human-nodename cluster-announce-ip
cluster-announce-port cluster-announce-tls-port cluster-blacklist-ttl
cluster-compatibility-sample-ratio cluster-config-file cluster-config-save-behavior
cluster-databases cluster-enabled cluster-link-sendbuf-limit cluster-manual-failover-timeout
cluster-message-gossip-perc cluster-migration-barrier cluster-node-timeout
cluster-ping-interval cluster-port cluster-preferred-endpoint-type cluster-replica-no-failover
cluster-replica-validity-factor cluster-require-full-coverage cluster-slave-no-failover
cluster-slave-validity-factor cluster-slot-migration-handoff-max-lag-bytes
cluster-slot-migration-log-max-len cluster-slot-migration-max-archived-tasks
cluster-slot-migration-sync-buffer-drain-timeout cluster-slot-migration-write-pause-timeout
cluster-slot-stats-enabled commandlog-execution-slower-than commandlog-large-reply-max-len
commandlog-large-request-max-len commandlog-reply-larger-than commandlog-request-larger-than
commandlog-slow-execution-max-len crash-log-enabled crash-memcheck-enabled daemonize databases
dbfilename debug-context dir disable-thp dual-channel-replication-enabled dynamic-hz
enable-debug-assert enable-debug-command enable-module-command enable-protected-configs
events-per-io-thread extended-redis-compatibility gopher-enabled hash-max-listpack-entries
hash-max-listpack-value hash-max-template-entries hash-max-ziplist-entries
hash-max-ziplist-value hash-min-template-entries hash-rdb-load-max-template-entries
hash-rdb-load-min-template-entries hash-rdb-load-template-disassembly-threshold hash-seed
hide-user-data-from-log hll-sparse-max-bytes hz ignore-warnings import-mode io-threads
io-threads-always-active io-threads-do-reads jemalloc-bg-thread key-memory-histograms
latency-monitor-threshold latency-tracking latency-tracking-info-percentiles
lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del
lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor list-compress-depth
list-max-listpack-size list-max-ziplist-size locale-collate log-format log-timestamp-format
logfile loglevel lookahead lua-enable-deprecated-api lua-enable-insecure-api lua-time-limit
masterauth masteruser max-new-connections-per-cycle max-new-tls-connections-per-cycle
maxclients maxmemory maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy
maxmemory-samples min-io-threads-avoid-copy-reply min-replicas-max-lag min-replicas-to-write
min-slaves-max-lag min-slaves-to-write min-string-size-avoid-copy-reply
min-string-size-avoid-copy-reply-threaded mptcp no-appendfsync-on-rewrite
notify-keyspace-events oom-score-adj oom-score-adj-values pidfile port prefetch-batch-max-size
preload-file primaryauth primaryuser proc-title-template propagation-error-behavior
protected-mode proto-max-bulk-len rdb-del-sync-files rdb-save-incremental-fsync
rdb-version-check rdbchecksum rdbcompression rdma-bind rdma-completion-vector rdma-port
rdma-rx-size repl-backlog-size repl-backlog-ttl repl-disable-tcp-nodelay repl-diskless-load
repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas repl-mptcp
repl-ping-replica-period repl-ping-slave-period repl-timeout replica-announce-ip
replica-announce-port replica-announced replica-full-sync-buffer-limit
replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority
replica-read-only replica-serve-stale-data replicaof req-res-logfile requirepass
sanitize-dump-payload save server-cpulist server_cpulist set-max-intset-entries
set-max-listpack-entries set-max-listpack-value set-proc-title shutdown-on-sigint
shutdown-on-sigterm shutdown-timeout slave-announce-ip slave-announce-port
slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only slave-serve-stale-data
slaveof slot-migration-max-failover-repl-bytes slowlog-entry-max-argc
slowlog-entry-max-string-len slowlog-log-slower-than slowlog-max-len socket-mark-id
stop-writes-on-bgsave-error stream-idmp-duration stream-idmp-maxsize stream-node-max-bytes
stream-node-max-entries supervised syslog-enabled syslog-facility syslog-ident tcp-backlog
tcp-keepalive timeout tls-auth-clients tls-auth-clients-user tls-auto-reload-interval
tls-ca-cert-dir tls-ca-cert-file tls-cert-file tls-ciphers tls-ciphersuites
tls-client-cert-file tls-client-key-file tls-client-key-file-pass tls-cluster
tls-dh-params-file tls-expected-peer-name tls-key-file tls-key-file-pass tls-port
tls-prefer-server-ciphers tls-protocols tls-replication tls-session-cache-size
tls-session-cache-timeout tls-session-caching tracking-table-max-keys unixsocket
unixsocketgroup unixsocketperm use-exit-on-panic zset-max-listpack-entries
zset-max-listpack-value zset-max-ziplist-entries zset-max-ziplist-value
)";

// Options of the modules that come with Redis 8 and with Valkey.
constexpr std::string_view kModuleNames = R"(
cf-bucket-size cf-expansion-factor cf-initial-size cf-max-expansions cf-max-iterations
json.max-path-limit ldap.servers search-_numeric-compress search-default-dialect
search-on-timeout search-threads search-timeout search-workers search.reader-threads
ts-chunk-size-bytes ts-compaction-policy ts-duplicate-policy ts-encoding
ts-ignore-max-time-diff ts-ignore-max-val-diff ts-libmr-protocol ts-num-threads
ts-retention-policy ts-topology-events vset-force-single-threaded-execution
)";

// The lines of redis.conf of Redis 7.0 that are not comments.
constexpr std::string_view kStock70 = R"(
bind 127.0.0.1 -::1
protected-mode yes
port 6379
tcp-backlog 511
timeout 0
tcp-keepalive 300
daemonize no
pidfile /var/run/server_6379.pid
loglevel notice
logfile ""
databases 16
always-show-logo no
set-proc-title yes
proc-title-template "{title} {listen-addr} {server-mode}"
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
rdb-del-sync-files no
dir ./
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
repl-diskless-sync-delay 5
repl-diskless-sync-max-replicas 0
repl-diskless-load disabled
repl-disable-tcp-nodelay no
replica-priority 100
acllog-max-len 128
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
replica-lazy-flush no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
oom-score-adj no
oom-score-adj-values 0 200 800
disable-thp yes
appendonly no
appendfilename "appendonly.aof"
appenddirname "appendonlydir"
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
aof-load-truncated yes
aof-use-rdb-preamble yes
aof-timestamp-enabled no
slowlog-log-slower-than 10000
slowlog-max-len 128
latency-monitor-threshold 0
notify-keyspace-events ""
hash-max-listpack-entries 512
hash-max-listpack-value 64
list-max-listpack-size -2
list-compress-depth 0
set-max-intset-entries 512
zset-max-listpack-entries 128
zset-max-listpack-value 64
hll-sparse-max-bytes 3000
stream-node-max-bytes 4096
stream-node-max-entries 100
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
dynamic-hz yes
aof-rewrite-incremental-fsync yes
rdb-save-incremental-fsync yes
jemalloc-bg-thread yes
)";
// Lines of the sample files of later servers. redis.conf of Redis 7.0 lacks their options, or gives
// them other values.
constexpr std::string_view kSince72 =
    "locale-collate \"\"\nset-max-listpack-entries 128\nset-max-listpack-value 64\n";
constexpr std::string_view kSinceValkey80 =
    "hide-user-data-from-log yes\ndual-channel-replication-enabled no\n"
    "lazyfree-lazy-eviction yes\nlazyfree-lazy-expire yes\nlazyfree-lazy-server-del yes\n"
    "replica-lazy-flush yes\nlazyfree-lazy-user-del yes\nlazyfree-lazy-user-flush yes\n";
constexpr std::string_view kSinceValkey81 =
    "commandlog-execution-slower-than 10000\ncommandlog-slow-execution-max-len 128\n"
    "commandlog-request-larger-than 1048576\ncommandlog-large-request-max-len 128\n"
    "commandlog-reply-larger-than 1048576\ncommandlog-large-reply-max-len 128\n";
constexpr std::string_view kOf62 =
    "repl-diskless-sync no\nlua-time-limit 5000\nhash-max-ziplist-entries 512\n"
    "hash-max-ziplist-value 64\nlist-max-ziplist-size -2\nzset-max-ziplist-entries 128\n"
    "zset-max-ziplist-value 64\n";
constexpr std::string_view kSince86 =
    "lookahead 16\nreplica-full-sync-buffer-limit 0\naof-load-corrupt-tail-max-size 0\n"
    "cluster-slot-stats-enabled no\nkey-memory-histograms no\ntls-auth-clients-user off\n"
    "loadmodule ./modules/redisbloom/redisbloom.so\nbf-error-rate 0.01\ncf-initial-size 1024\n"
    "search-workers 0\nts-num-threads 3\n";

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class NewerOptionsTest : public ConfigTest {};

TEST_F(NewerOptionsTest, EveryReleasedNameIsKnown) {
  const auto names = words_of(kReleasedNames);
  EXPECT_GT(names.size(), 270U);
  for (const std::string& name : names) EXPECT_TRUE(find_option(name)) << name;
}

TEST_F(NewerOptionsTest, ModuleOptionsAreAcceptedWithWarning) {
  for (const std::string& name : words_of(kModuleNames)) {
    Config config;
    EXPECT_EQ(load(config, {write("a.conf", name + " 1\n")}), "") << name;
    EXPECT_THAT(config.take_warnings(), AllOf(SizeIs(1), Each(HasSubstr("'" + name + "'"))));
    EXPECT_EQ(get(config, name), "(0 found)");
  }
  EXPECT_EQ(foreign_module_of("search-workers"), "search");
  EXPECT_EQ(foreign_module_of("search-"), "");
  EXPECT_EQ(foreign_module_of("bf-error-rate"), "");
}

TEST_F(NewerOptionsTest, SampleFilesOfOthersLoad) {
  const std::string since72(kSince72);
  const std::string valkey80 = since72 + std::string(kSinceValkey80);
  const std::pair<std::string_view, std::string> kFiles[] = {
      {"Redis 6.2", std::string(kOf62)},
      {"Redis 7.0", ""},
      {"Redis 7.2", since72},
      {"Redis 7.4", since72},
      {"Redis 8.0", since72},
      {"Redis 8.6", since72 + std::string(kSince86)},
      {"Valkey 7.2", since72},
      {"Valkey 8.0", valkey80},
      {"Valkey 9.0", valkey80 + std::string(kSinceValkey81)},
  };
  for (const auto& [server, more] : kFiles) {
    Config config;
    EXPECT_EQ(load(config, {write("a.conf", std::string(kStock70) + more)}), "") << server;
    // Each warning must be about an option that has no effect.
    EXPECT_THAT(config.take_warnings(), Each(HasSubstr("has no effect"))) << server;
  }
}

TEST_F(NewerOptionsTest, ValuesAreCheckedAndShown) {
  ASSERT_EQ(load({write("a.conf", "rdb-version-check relaxed\nlookahead 4\n")}), "");
  EXPECT_THAT(config_.take_warnings(), SizeIs(2));
  EXPECT_EQ(get("lookahead"), "4");
  EXPECT_EQ(set({{"log-format", "xml"}}),
            config_set_error("log-format", unknown_choice("legacy, logfmt").reason));
}

TEST_F(NewerOptionsTest, DefaultsGiveNoWarning) {
  ASSERT_EQ(load({write("a.conf",
                        "lookahead 16\nlocale-collate \"\"\nimport-mode no\n"
                        "hide-user-data-from-log yes\n")}),
            "");
  EXPECT_THAT(config_.take_warnings(), IsEmpty());
}

TEST_F(NewerOptionsTest, NewNamesSetTheOptionsOfOldOnes) {
  ASSERT_EQ(load({write("a.conf",
                        "primaryauth secret\nprimaryuser repl\n"
                        "commandlog-execution-slower-than 7\n"
                        "commandlog-slow-execution-max-len 9\nbf.bloom_capacity 500\n"
                        "bf.bloom_fp_rate 0.5\nbf.bloom_expansion_rate 4\n")}),
            "");
  EXPECT_THAT(config_.take_warnings(), IsEmpty());
  EXPECT_EQ(get("masterauth"), "secret");
  EXPECT_EQ(get("masteruser"), "repl");
  EXPECT_EQ(get("slowlog-log-slower-than"), "7");
  EXPECT_EQ(get("slowlog-max-len"), "9");
  EXPECT_EQ(get("bf-initial-size"), "500");
  EXPECT_EQ(get("bf.bloom_fp_rate"), get("bf-error-rate"));
  EXPECT_EQ(get("bf-expansion-factor"), "4");
  EXPECT_TRUE(Config::is_sensitive("primaryauth"));
}

}  // namespace
}  // namespace server
