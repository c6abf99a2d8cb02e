// SPDX-License-Identifier: MIT
#include "server/process/statistics.h"

namespace server {

void Statistics::reset() {
  for (auto& thread : threads_) {
    for (Counter* counter :
         {&thread->commands_processed, &thread->connections_received, &thread->connections_rejected,
          &thread->input_bytes, &thread->output_bytes, &thread->reads_processed,
          &thread->writes_processed, &thread->keyspace_hits, &thread->keyspace_misses,
          &thread->query_buffer_disconnections, &thread->output_buffer_disconnections}) {
      counter->reset();
    }
    for (CommandCounters& command : thread->commands) {
      command.calls.reset();
      command.ticks.reset();
      command.rejected.reset();
      command.failed.reset();
    }
  }
  const std::scoped_lock lock(errors_mutex_);
  errors_.clear();
  total_errors_ = 0;
}

}  // namespace server
