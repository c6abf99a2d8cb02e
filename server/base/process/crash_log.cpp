// SPDX-License-Identifier: MIT
#include "server/base/process/crash_log.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iterator>
#include <string_view>

#include "server/base/metrics/statistics.h"
#include "server/base/process/raw_report.h"

namespace server {
namespace {

struct CrashSignal {
  int number;
  std::string_view name;
};
constexpr CrashSignal kCrashSignals[] = {{SIGSEGV, "SIGSEGV"},
                                         {SIGBUS, "SIGBUS"},
                                         {SIGFPE, "SIGFPE"},
                                         {SIGILL, "SIGILL"},
                                         {SIGABRT, "SIGABRT"}};
constexpr size_t kCrashStackBytes = size_t{64} << 10;

std::atomic<const Statistics*> crash_statistics{nullptr};
// The thread that writes the report; 0 if there is none yet.
std::atomic<pid_t> reporting_thread{0};

std::string_view name_of(int signal) {
  const auto* const found = std::ranges::find(kCrashSignals, signal, &CrashSignal::number);
  return found == std::end(kCrashSignals) ? "a signal" : found->name;
}

// Returns the first line of a small file, without its line end.
std::string_view read_line(const char* path, std::array<char, 32>& buffer) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  const std::string_view text(buffer.data(), static_cast<size_t>(std::max<ssize_t>(0, size)));
  return text.substr(0, text.find('\n'));
}

void write_thread_name(RawOutput& out, std::string_view id) {
  std::array<char, 64> path{};
  constexpr std::string_view kTasks = "/proc/self/task/";
  constexpr std::string_view kName = "/comm";
  if (kTasks.size() + id.size() + kName.size() >= path.size()) return;
  char* end = std::ranges::copy(kTasks, path.data()).out;
  end = std::ranges::copy(id, end).out;
  std::ranges::copy(kName, end);
  std::array<char, 32> buffer;
  out << "  " << id << " " << read_line(path.data(), buffer) << "\n";
}

// write_threads() uses the system call getdents64, because opendir() may allocate.
void write_threads(RawOutput& out) {
  struct DirectoryEntry {
    uint64_t node;
    int64_t offset;
    uint16_t size_bytes;
    uint8_t type;
    char name[1];
  };
  out << "Threads:\n";
  const int directory = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(DirectoryEntry) std::array<char, 4096> buffer;
  for (;;) {
    const long size = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size());
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const char* const entry = buffer.data() + at;
      uint16_t entry_bytes = 0;
      std::memcpy(&entry_bytes, entry + offsetof(DirectoryEntry, size_bytes), sizeof entry_bytes);
      const std::string_view name(entry + offsetof(DirectoryEntry, name));
      if (!name.starts_with('.')) write_thread_name(out, name);
      at += entry_bytes;
    }
  }
  ::close(directory);
}

// The newest command is written first: the one that the thread is running, or has completed last.
void write_commands(RawOutput& out) {
  const Statistics* const statistics = crash_statistics.load();
  if (statistics == nullptr) return;
  out << "Last commands of each I/O thread, the newest first:\n";
  for (size_t i = 0; i < statistics->thread_count(); ++i) {
    const ThreadStatistics& thread = statistics->thread(i);
    const bool is_stream = i + 1 == statistics->thread_count();
    out << "  ";
    if (is_stream) {
      out << "the leader's stream:";
    } else {
      out << "io-" << static_cast<int64_t>(i) << ":";
    }
    const uint64_t newest = thread.commands_processed.value();
    for (uint64_t age = 0; age < CommandTrail::kLength && age <= newest; ++age) {
      const std::string* const name = thread.trail.name(newest - age);
      if (name != nullptr) out << " " << *name;
    }
    out << "\n";
  }
}

void write_cause(RawOutput& out, int signal, const siginfo_t& info) {
  out << "Bloomery " << BLOOMERY_VERSION << " crashed by " << name_of(signal) << " (signal "
      << int64_t{signal} << ", code " << int64_t{info.si_code} << ")";
  if (info.si_code == SI_USER || info.si_code == SI_TKILL) {
    out << ", sent by process " << int64_t{info.si_pid};
  } else {
    out << " at address ";
    out.hexadecimal(reinterpret_cast<uintptr_t>(info.si_addr));
  }
  std::array<char, 17> thread{};
  ::prctl(PR_GET_NAME, thread.data());
  out << "\nProcess " << int64_t{::getpid()} << ", thread " << int64_t{::gettid()} << " "
      << thread.data() << ", " << int64_t{::time(nullptr)} << " s since 1970\n";
}

void write_report(int signal, const siginfo_t& info) {
  const ReportFile file;
  RawOutput out(file.descriptor());
  out << "\n=== BLOOMERY CRASH REPORT: send all of it, up to its end, with the log before it ===\n";
  write_cause(out, signal, info);
  out << "Stack (c++filt makes names readable, addr2line -Cfe bloomery-server +0x... finds lines):"
         "\n";
  write_stack(out);
  write_commands(out);
  write_threads(out);
  out << "=== END OF THE CRASH REPORT ===\n";
}

void on_crash(int signal, siginfo_t* info, void* /*context*/) {
  pid_t none = 0;
  const pid_t self = ::gettid();
  if (reporting_thread.compare_exchange_strong(none, self)) {
    write_report(signal, *info);
  } else if (none != self) {
    // Another thread crashed first. This thread waits, because the other thread ends the process
    // when it has written its report.
    for (;;) ::pause();
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

constexpr bool kSanitizerReports =
#if defined(BLOOMERY_ASAN) || defined(BLOOMERY_TSAN)
    true;
#else
    false;
#endif

}  // namespace

void install_crash_log(const std::string& log_file) {
  prepare_reports(log_file);
  if (kSanitizerReports) return;
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (const CrashSignal& signal : kCrashSignals) ::sigaction(signal.number, &action, nullptr);
}

CrashTrails::CrashTrails(const Statistics& statistics) {
  crash_statistics = &statistics;
}

CrashTrails::~CrashTrails() {
  crash_statistics = nullptr;
}

CrashStack::CrashStack() : memory_(new std::byte[kCrashStackBytes]) {
  stack_t stack{};
  stack.ss_sp = memory_.get();
  stack.ss_size = kCrashStackBytes;
  ::sigaltstack(&stack, nullptr);
}

CrashStack::~CrashStack() {
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  ::sigaltstack(&stack, nullptr);
}

}  // namespace server
