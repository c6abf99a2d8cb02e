// SPDX-License-Identifier: MIT
//
// Writes the sections of INFO about the process: server, clients, persistence, cpu, modules,
// cluster.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.h"
#include "persistence/aof/aof_writer.h"
#include "server/base/config/config.h"
#include "server/base/process/build_info.h"
#include "server/base/process/compatibility.h"
#include "server/base/process/process_facts.h"
#include "server/base/process/server_state.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/durability/durability.h"
#include "server/durability/loading/data_loader.h"
#include "server/durability/loading/log_switch.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "server/replication/shutdown.h"
#include "server/session/clients.h"

namespace server::info {
namespace {

std::string operating_system() {
  struct utsname name {};
  if (uname(&name) != 0) return "";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string seconds_text(const timeval& time) {
  return fmt::format("{}.{:06}", time.tv_sec, time.tv_usec);
}

struct Usage {
  explicit Usage(int who) { getrusage(who, &figures); }
  struct rusage figures {};
};

}  // namespace

void write_server(const Source& source, Lines& lines) {
  constexpr int64_t kSecondsPerDay = 86400;
  const Services& services = source.services;
  const ProcessFacts& facts = services.facts;
  const int64_t now_s = source.now_ms / 1000;
  const int64_t uptime_s = std::max<int64_t>(0, (source.now_ms - facts.started_ms) / 1000);
  lines.field("redis_version", kCompatibleRedisVersion);
  lines.field("redis_git_sha1", short_commit(build_info()));
  lines.field("redis_git_dirty", build_info().is_modified ? 1 : 0);
  lines.field("redis_build_id", build_info().commit.substr(0, 16));
  lines.field("redis_mode", services.state.is_in_cluster() ? "cluster" : "standalone");
  lines.field("server_name", "bloomery");
  lines.field("bloomery_version", BLOOMERY_VERSION);
  lines.field("os", operating_system());
  lines.field("arch_bits", sizeof(void*) * 8);
  lines.field("monotonic_clock", "POSIX clock_gettime");
  lines.field("multiplexing_api", "epoll");
  lines.field("atomicvar_api", "c11-builtin");
  lines.field("gcc_version",
              fmt::format("{}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
  lines.field("process_id", getpid());
  const std::string supervised = services.config.text(OptionId::kSupervised);
  lines.field("process_supervised", supervised == "auto" ? "unknown" : supervised);
  lines.field("run_id", facts.run_id);
  // As in Redis, tcp_port is the port that Sentinel and failover tools connect to.
  const int64_t port = services.config.port();
  lines.field("tcp_port", port != 0 ? port : services.config.integer(OptionId::kTlsPort));
  lines.field("server_time_usec", services.clock.wall_us());
  lines.field("uptime_in_seconds", uptime_s);
  lines.field("uptime_in_days", uptime_s / kSecondsPerDay);
  const int64_t ready_us = services.state.ready_us;
  const int64_t since_ready_us = ready_us == 0 ? 0 : services.clock.monotonic_us() - ready_us;
  lines.field("seconds_since_ready", since_ready_us / core::kSecondUs);
  lines.field("hz", services.config.hz());
  lines.field("configured_hz", services.config.hz());
  // As in Redis, lru_clock is the lowest 24 bits of the time in seconds.
  lines.field("lru_clock", now_s & 0xffffff);
  lines.field("executable", facts.executable);
  lines.field("config_file", facts.config_file);
  lines.field("availability_zone", services.config.text(OptionId::kAvailabilityZone));
  if (const auto left_ms = services.shutdown.left_ms()) {
    lines.field("shutdown_in_milliseconds", *left_ms);
  }
  lines.field("io_threads_active", facts.io_thread_count > 1 ? 1 : 0);
}

void write_clients(const Source& source, Lines& lines) {
  uint64_t input_max = 0;
  uint64_t output_max = 0;
  uint64_t blocked = 0;
  uint64_t replicas = 0;
  uint64_t watching = 0;
  uint64_t watched_keys = 0;
  const auto clients = source.services.clients.list();
  for (const auto& client : clients) {
    input_max = std::max(input_max, client->query_buffer_bytes + client->query_buffer_free_bytes);
    output_max = std::max(output_max, client->output_buffer_bytes.get());
    blocked += client->wait != ClientWait::kNone ? 1 : 0;
    replicas += client->peer == Peer::kReplica ? 1 : 0;
    const uint64_t watched = client->watched_keys;
    watching += watched > 0 ? 1 : 0;
    watched_keys += watched;
  }
  lines.field("connected_clients", clients.size() - replicas);
  lines.zeros({"cluster_connections"});
  lines.field("maxclients", source.services.config.max_clients());
  lines.field("client_recent_max_input_buffer", input_max);
  lines.field("client_recent_max_output_buffer", output_max);
  lines.field("blocked_clients", blocked);
  lines.field("tracking_clients", source.services.state.tracking.clients.load());
  lines.field("watching_clients", watching);
  lines.field("total_watched_keys", watched_keys);
  lines.zeros({"clients_in_timeout_table"});
}

void write_saves(const Source& source, Lines& lines) {
  const Durability& durability = source.services.durability;
  const SaveRecord record = durability.saves.snapshots.record();
  const SaveProgress child = durability.saves.slot.progress();
  // A snapshot for replicas is not written to `dump.rdb`, but it counts as a running save, because
  // a child writes it.
  const bool runs = durability.saves.slot.task() == SaveTask::kSave ||
                    durability.saves.slot.task() == SaveTask::kTransfer;
  lines.field("rdb_changes_since_last_save", durability.saves.snapshots.changes_since_save());
  lines.field("rdb_bgsave_in_progress", runs ? 1 : 0);
  lines.field("rdb_last_save_time", durability.saves.snapshots.last_save_s());
  lines.field("rdb_last_bgsave_status", record.last_was_ok ? "ok" : "err");
  lines.field("rdb_last_bgsave_time_sec", record.last_time_s);
  lines.field("rdb_current_bgsave_time_sec", runs ? child.running_us / 1'000'000 : -1);
  lines.field("rdb_saves", record.count);
  lines.field("rdb_last_cow_size", record.last_copied_bytes);
  lines.field("rdb_last_load_keys_expired", durability.loader.figures().expired_keys.load());
  lines.field("rdb_last_load_keys_loaded", durability.loader.figures().loaded_keys.load());
}

void write_append_log(const Source& source, Lines& lines) {
  Durability& durability = source.services.durability;
  const SaveRecord record = durability.saves.rewrites.record();
  const SaveProgress child = durability.saves.slot.progress();
  const bool runs = durability.saves.slot.task() == SaveTask::kRewrite;
  lines.field("aof_enabled", durability.log_is_on() ? 1 : 0);
  // Until the log is open and has its first base, a start would not load the log.
  const bool is_due = durability.log_switch.is_wanted() && !durability.log_is_on();
  const bool begins = is_due || durability.log_writer().needs_base();
  lines.field("aof_rewrite_in_progress", runs || begins ? 1 : 0);
  lines.field("aof_rewrite_scheduled", durability.saves.rewrites.is_scheduled() ? 1 : 0);
  lines.field("aof_last_rewrite_time_sec", record.last_time_s);
  lines.field("aof_current_rewrite_time_sec", runs ? child.running_us / 1'000'000 : -1);
  lines.field("aof_last_bgrewrite_status", record.last_was_ok ? "ok" : "err");
  lines.field("aof_rewrites", record.count);
  lines.field("aof_rewrites_consecutive_failures", record.failures_in_a_row);
  const bool fails = durability.availability.has(Availability::kAppendLogFails);
  lines.field("aof_last_write_status", fails ? "err" : "ok");
  lines.field("aof_last_cow_size", record.last_copied_bytes);
  lines.zeros({"module_fork_in_progress", "module_fork_last_cow_size"});
  if (!durability.log_is_on()) return;
  lines.field("aof_current_size", durability.log_writer().size_bytes());
  lines.field("aof_base_size", durability.log_writer().base_size_bytes());
  lines.zeros({"aof_pending_rewrite"});
  lines.field("aof_buffer_length", durability.log_writer().buffered_bytes());
  lines.field("aof_pending_bio_fsync", durability.append_log.syncs().is_running() ? 1 : 0);
  lines.field("aof_delayed_fsync", durability.append_log.syncs().delayed());
}

void write_loading(const Source& source, Lines& lines) {
  const LoadFigures& figures = source.services.durability.loader.figures();
  const uint64_t total = figures.total_bytes;
  const uint64_t loaded = std::min<uint64_t>(figures.loaded_bytes, total);
  const int64_t elapsed_us = source.services.clock.monotonic_us() - figures.started_us;
  const int64_t elapsed_s = elapsed_us / 1'000'000;
  lines.field("loading_start_time", source.now_ms / 1000 - elapsed_s);
  lines.field("loading_total_bytes", total);
  lines.field("loading_loaded_bytes", loaded);
  const double share = total == 0 ? 0 : static_cast<double>(loaded) / static_cast<double>(total);
  lines.field("loading_loaded_perc", fmt::format("{:.2f}", share * 100));
  const double left_s = share > 0 ? static_cast<double>(elapsed_us) / 1e6 * (1 - share) / share : 1;
  lines.field("loading_eta_seconds", static_cast<int64_t>(left_s));
}

void write_persistence(const Source& source, Lines& lines) {
  const Durability& durability = source.services.durability;
  const SaveProgress child = durability.saves.slot.progress();
  const bool is_loading = durability.availability.has(Availability::kLoading);
  lines.field("loading", is_loading ? 1 : 0);
  lines.zeros({"async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"});
  lines.ratio("current_fork_perc", child.share() * 100);
  lines.field("current_save_keys_processed", child.written_keys);
  lines.field("current_save_keys_total", child.total_keys);
  if (child.running_us >= 0) lines.field("current_save_eta_seconds", child.left_s());
  write_saves(source, lines);
  write_append_log(source, lines);
  if (is_loading) write_loading(source, lines);
}

void write_cpu(const Source&, Lines& lines) {
  const Usage process(RUSAGE_SELF);
  const Usage children(RUSAGE_CHILDREN);
  // Bloomery has no main thread that runs all commands. So the fields for Redis' main thread show
  // the times of the thread that runs this INFO.
  const Usage thread(RUSAGE_THREAD);
  lines.field("used_cpu_sys", seconds_text(process.figures.ru_stime));
  lines.field("used_cpu_user", seconds_text(process.figures.ru_utime));
  lines.field("used_cpu_sys_children", seconds_text(children.figures.ru_stime));
  lines.field("used_cpu_user_children", seconds_text(children.figures.ru_utime));
  lines.field("used_cpu_sys_main_thread", seconds_text(thread.figures.ru_stime));
  lines.field("used_cpu_user_main_thread", seconds_text(thread.figures.ru_utime));
}

void write_module_list(const Source&, Lines& lines) {
  lines.field("module", fmt::format("name=bf,ver={},api=1,filters=0,usedby=[],using=[],options=[]",
                                    kCompatibleModuleVersion));
}

void write_cluster(const Source& source, Lines& lines) {
  lines.field("cluster_enabled", source.services.state.is_in_cluster() ? 1 : 0);
}

}  // namespace server::info
