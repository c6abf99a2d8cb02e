// SPDX-License-Identifier: MIT
#include "server/tools/build_filter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "core/bloom/layouts.h"
#include "core/clock.h"
#include "server/base/log/progress_line.h"
#include "server/base/process/compatibility.h"
#include "server/base/process/memory_monitor.h"
#include "server/tools/build_options.h"
#include "server/tools/filter_file.h"
#include "server/tools/signal_cleanup.h"
#include "server/tools/temporary_output.h"

namespace server {
namespace {

// Returns the number of processors that this process may use.
unsigned core_count() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&cores)));
}

void report(const BuildOptions& options, const FilterFileFigures& figures, double seconds,
            unsigned cores) {
  fmt::print(
      "{}: key {}, layout {}, items {} of {} read, capacity {}, layers {}, filter bytes {}, file "
      "bytes {}\n{:.2f} s, {:.2f} million items a second and core, cores {}, processor time {:.2f} "
      "s\n",
      options.path, options.key, layout_name(figures.layout), figures.item_count,
      figures.record_count, figures.capacity, figures.layer_count, figures.filter_bytes,
      figures.file_bytes, seconds, double(figures.record_count) / 1e6 / seconds / cores, cores,
      double(std::clock()) / CLOCKS_PER_SEC);
}

// The names of the steps, in the order of BuildStep.
constexpr std::string_view kStepNames[] = {"counting", "adding  ", "writing "};

// Shows the completed share if the amount of work is known, otherwise the work done so far.
void show_progress(ProgressLine& line, const BuildProgress& progress) {
  std::string details = fmt::format("{:.1f} M items", double(progress.record_count) / 1e6);
  double share = -1;
  if (progress.total_bytes == 0) {
    details = fmt::format("{} MB  {}", progress.done_bytes / 1'000'000, details);
  } else {
    share = double(progress.done_bytes) / double(progress.total_bytes);
  }
  line.show(kStepNames[static_cast<size_t>(progress.step)], share, details);
}

core::Result<int> build(const BuildOptions& options) {
  const core::SystemClock clock;
  const int64_t start_us = clock.monotonic_us();
  ProgressLine line = ProgressLine::on_terminal(clock);
  FilterFileRequest request;
  request.path = options.path;
  request.key = options.key;
  request.parameters = options.parameters;
  request.counts_items = options.counts_items;
  request.native_version = options.native_version;
  request.format = options.format;
  request.server_version = kCompatibleRedisVersion;
  request.created_at_s = clock.wall_ms() / 1000;
  request.file_number = random_file_number();
  request.on_progress = [&line](const BuildProgress& progress) { show_progress(line, progress); };
  const std::string temporary = temporary_filter_file(request);
  const SignalCleanup cleanup(temporary);
  const MemoryMonitor memory;
  core::ThreadTeam team(core_count());
  DescriptorStream items(STDIN_FILENO, "standard input");
  const auto built =
      build_filter_file({persistence::posix_file_system(), memory, team}, items, request);
  line.clear();
  if (!built) return built.error();
  const double seconds = double(std::max<int64_t>(1, clock.monotonic_us() - start_us)) / 1e6;
  report(options, *built, seconds, team.size());
  return EXIT_SUCCESS;
}

}  // namespace

core::Result<int> build_filter(std::span<const std::string> arguments) {
  // For a closed standard input, open_standard_streams() has opened one that cannot be read.
  const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY) {
    return core::Error{"standard input is closed: give the items there, for example with < FILE"};
  }
  const auto options = parse_build_options(arguments);
  if (!options) return options.error();
  return build(*options);
}

}  // namespace server
