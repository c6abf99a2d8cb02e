// SPDX-License-Identifier: MIT
//
// Config: the values of all options; read at start, by CONFIG GET, SET and REWRITE, and by the hot
// paths of every thread.
//
// Invariants: every value passed its row's parser; set() changes all of its pairs or none.
// Thread safety: after load() all members may be called from any thread. Numbers are atomics;
// strings are copied under a lock. A reader may see a value that a refusing hook takes back.
// Hooks run on the thread of set(), one set() at a time, and must not call set() or rewrite().
// Source: conf/bloomery.conf explains the options.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/config/option.h"

namespace core::bloom {
enum class LayoutId : uint8_t;
}  // namespace core::bloom

namespace server {

enum class Launch;

enum class LogLevel : int64_t { kDebug, kVerbose, kNotice, kWarning, kNothing };
enum class Supervised : int64_t { kUpstart, kSystemd, kAuto, kNo };
enum class AppendFsync : int64_t { kEverySecond, kAlways, kNo };
// kYes, a server among others, is not in this version and has no effect.
enum class ClusterMode : int64_t { kNo, kYes, kEmulated };
enum class DebugCommand : int64_t { kNo, kYes, kLocal };
// Where a client connects from, for `enable-protected-configs local`.
enum class Origin { kLocal, kRemote };

using NamedValue = std::pair<std::string, std::string>;

// Options that are carried out together.
struct OptionGroup {
  OptionGroup(OptionId id) : ids{id} {}
  OptionGroup(std::initializer_list<OptionId> some) : ids(some) {}
  std::vector<OptionId> ids;
};

// A change's apply and undo; see Config::on_change.
struct ConfigHooks;
using ConfigHooksPtr = std::shared_ptr<const ConfigHooks>;

// The file's directives that are not options.
struct OtherDirectives {
  // rename-command lines in order; an empty second name removes the command.
  std::vector<NamedValue> renamed_commands;
  // Where each line is, for messages: only the commands can validate it.
  std::vector<Directive> rename_lines;
  // The `user` lines. They have a name.
  std::vector<Directive> users;
};

class Config {
 public:
  // Carries a change out. An error takes the whole set() back; its message ends the reply.
  using Hook = std::function<core::Result<>()>;

  // Every option at its default.
  Config();
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // The file, then standard input, then the options of a command line; argv[0] is skipped.
  // Errors: the text to print before exiting. Unless it is kServe nothing is loaded.
  core::Result<Launch> load(int argc, const char* const* argv, int stdin_descriptor = 0);

  // Warnings for the operator: directives without effect here. Each is returned once.
  std::vector<std::string> take_warnings();

  // CONFIG GET pattern [pattern …]: names and aliases that match, each once.
  std::vector<NamedValue> get(std::span<const std::string_view> patterns) const;
  // CONFIG SET name value [name value …].
  core::Result<> set(std::span<const NamedValue> pairs, Origin origin = Origin::kRemote);
  // The server's own change of what clients may not set: REPLICAOF. Calls no hook and waits for
  // none, so that the caller may hold what a hook waits for.
  void replace(OptionId id, const std::string& text);
  // CONFIG REWRITE. `user_lines` replace the file's `user` lines. Errors: those of the file, and
  // that a start from the new text and its includes would fail or give other values. After an error
  // the file is as it was. With kAll, options at their defaults get lines as well.
  enum class Extent : uint8_t { kChanged, kAll };
  core::Result<> rewrite(const std::optional<std::vector<std::string>>& user_lines = std::nullopt,
                         Extent extent = Extent::kChanged);

  // Called after each set() that changed an option of the group, once, in order of registration.
  // When that set() fails, `undo` reverts `apply`, whether it succeeded or not. Without `undo`,
  // `apply` is called again and sees the old values.
  void on_change(const OptionGroup& group, Hook apply, std::function<void()> undo = nullptr);
  // Calls `apply`, which cannot fail, now and after each such change.
  void follow(const OptionGroup& group, const std::function<void()>& apply);

  // Whether values of this name or alias must not be shown, as in MONITOR or SLOWLOG.
  static bool is_sensitive(std::string_view name);

  // Absolute; empty when started without a file. For INFO.
  const std::string& file_path() const { return file_path_; }
  const OtherDirectives& other_directives() const { return other_directives_; }

  int64_t integer(OptionId id) const noexcept {
    return scalars_[static_cast<size_t>(id)].load(std::memory_order_relaxed);
  }
  bool flag(OptionId id) const noexcept { return integer(id) != 0; }
  double number(OptionId id) const noexcept { return std::bit_cast<double>(integer(id)); }
  std::string text(OptionId id) const;

  uint16_t port() const noexcept { return static_cast<uint16_t>(integer(OptionId::kPort)); }
  int64_t timeout_s() const noexcept { return integer(OptionId::kTimeout); }
  int64_t max_clients() const noexcept { return integer(OptionId::kMaxClients); }
  int64_t io_thread_count() const noexcept { return integer(OptionId::kIoThreads); }
  int64_t max_bulk_bytes() const noexcept { return integer(OptionId::kProtoMaxBulkLen); }
  int64_t query_buffer_limit_bytes() const noexcept {
    return integer(OptionId::kClientQueryBufferLimit);
  }
  BufferLimit output_buffer_limit(ClientClass client_class) const noexcept;
  int64_t max_memory_bytes() const noexcept { return integer(OptionId::kMaxMemory); }
  // Limit for the memory of all clients together; 0 is no limit.
  uint64_t client_memory_limit_bytes() const noexcept;
  std::string directory() const { return text(OptionId::kDir); }
  int64_t database_count() const noexcept { return integer(OptionId::kDatabases); }
  int64_t hz() const noexcept { return integer(OptionId::kHz); }
  AppendFsync append_fsync() const noexcept { return AppendFsync{integer(OptionId::kAppendFsync)}; }
  // 0 means no limit but maxmemory's.
  int64_t bloom_memory_limit_bytes() const noexcept {
    return integer(OptionId::kBloomMemoryUsageLimit);
  }

 private:
  struct Change {
    size_t index;
    std::string name;  // as the reply shall call it
    Value value;
  };
  using AtomicLimit = std::array<std::atomic<int64_t>, 3>;

  core::Result<> load_directives(const core::Result<std::vector<Directive>>& directives);
  core::Result<> apply(const Directive& directive);
  core::Result<> apply_other(const Directive& directive);
  void warn_if_without_effect(size_t index, const Value& value);
  core::Result<std::vector<Change>> prepare(std::span<const NamedValue> pairs, Origin origin) const;
  // False for an option that is fixed and has the value already. Errors: it has another value, or
  // is protected.
  core::Result<bool> may_change(size_t index, const NamedValue& pair, Origin origin) const;
  core::Result<> commit(const std::vector<Change>& changes);
  // Runs those of the change's hooks that `done` does not hold, and adds them.
  core::Result<> run_hooks(const Change& change, std::vector<ConfigHooksPtr>& done);
  void store(size_t index, const Value& value);
  std::string text_at(size_t index) const;
  void warn(std::string message);

  std::mutex set_mutex_;            // held through set() and rewrite()
  mutable std::mutex mutex_;        // guards texts_, hooks_, warnings_
  std::vector<std::string> texts_;  // canonical, by row of the option table
  std::array<std::vector<ConfigHooksPtr>, kOptionIdCount> hooks_;
  std::vector<std::string> warnings_;

  std::array<std::atomic<int64_t>, kOptionIdCount> scalars_{};
  std::array<AtomicLimit, kClientClassCount> buffer_limits_{};

  // Written by load() only.
  std::string file_path_;
  OtherDirectives other_directives_;
};

// Views of options that belong together; the Config must outlive them.

// Where and how this server listens, apart from the port.
class ListenOptions {
 public:
  explicit ListenOptions(const Config& config) : config_(config) {}

  std::vector<std::string> bind_addresses() const;
  std::string unix_socket() const { return config_.text(OptionId::kUnixSocket); }
  int64_t unix_socket_mode() const noexcept { return config_.integer(OptionId::kUnixSocketPerm); }
  int64_t tcp_keepalive_s() const noexcept { return config_.integer(OptionId::kTcpKeepalive); }
  int64_t tcp_backlog() const noexcept { return config_.integer(OptionId::kTcpBacklog); }
  bool protected_mode() const noexcept { return config_.flag(OptionId::kProtectedMode); }

 private:
  const Config& config_;
};

// How the process runs and where it writes its log.
class RunOptions {
 public:
  explicit RunOptions(const Config& config) : config_(config) {}

  LogLevel log_level() const noexcept { return LogLevel{config_.integer(OptionId::kLogLevel)}; }
  std::string log_file() const { return config_.text(OptionId::kLogFile); }
  std::string pid_file() const { return config_.text(OptionId::kPidFile); }
  bool daemonize() const noexcept { return config_.flag(OptionId::kDaemonize); }
  Supervised supervised() const noexcept {
    return Supervised{config_.integer(OptionId::kSupervised)};
  }

 private:
  const Config& config_;
};

// Parameters of a new filter that the command does not give.
class BloomDefaults {
 public:
  explicit BloomDefaults(const Config& config) : config_(config) {}

  double error_rate() const noexcept { return config_.number(OptionId::kBloomErrorRate); }
  int64_t capacity() const noexcept { return config_.integer(OptionId::kBloomInitialSize); }
  // 0 means a filter that does not scale.
  int64_t expansion() const noexcept { return config_.integer(OptionId::kBloomExpansionFactor); }
  double tightening_ratio() const noexcept {
    return config_.number(OptionId::kBloomTighteningRatio);
  }
  core::bloom::LayoutId layout() const noexcept;
  bool random_seed() const noexcept { return config_.flag(OptionId::kBloomUseRandomSeed); }

 private:
  const Config& config_;
};

}  // namespace server
