// SPDX-License-Identifier: MIT
#include "persistence/bytes/chunked_output.h"

#include <algorithm>
#include <utility>

#include "persistence/bytes/crc64.h"

namespace persistence {

ChunkedOutput::ChunkedOutput(ByteSink& sink, Options options)
    : sink_(sink), options_(std::move(options)) {
  options_.buffer_bytes = std::max<size_t>(options_.buffer_bytes, 1);
  buffer_.reserve(options_.buffer_bytes);
}

void ChunkedOutput::append(std::string_view bytes) {
  while (!bytes.empty() && ok()) {
    const size_t room = options_.buffer_bytes - buffer_.size();
    const size_t count = std::min(room, bytes.size());
    buffer_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (count == room) send();
  }
}

core::Result<> ChunkedOutput::flush() {
  if (ok() && !buffer_.empty()) send();
  return status();
}

uint64_t ChunkedOutput::sum() const {
  return options_.sums ? crc64(sum_, buffer_) : 0;
}

void ChunkedOutput::send() {
  if (options_.sums) sum_ = crc64(sum_, buffer_);
  if (auto written = sink_.write(buffer_); !written) {
    error_ = written.error();
    return;
  }
  sent_bytes_ += buffer_.size();
  buffer_.clear();
  if (options_.on_piece) options_.on_piece();
}

}  // namespace persistence
