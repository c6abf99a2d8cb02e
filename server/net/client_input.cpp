// SPDX-License-Identifier: MIT
#include "server/net/client_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/base/transport/stream.h"

namespace server::net {
namespace {

// If at least this many bytes of a command are missing, they are read directly into the client's
// buffer. The buffer then grows by the size of a whole read. If fewer bytes are missing, they are
// read into the thread's buffer. So a slow client that sends small commands does not occupy that
// much memory.
constexpr size_t kBigPartBytes = ClientInput::kReadBytes / 4;
// Limit on one read, so that other clients are served between reads.
constexpr size_t kBigReadBytes = 16 * ClientInput::kReadBytes;
// Above this size memory is allocated step by step, because the client may never send the bytes
// that it has announced.
constexpr size_t kRoomAtOnceMax = BigArgument::kAtOnceBytesMax;
constexpr size_t kLineEndBytes = 2;
// An argument gets separate memory only if more than this many bytes of it are missing.
constexpr size_t kBigRestBytes = 2 * Stream::kExtraBytesMax;
// Limit on the bytes that one read may take beyond a big argument: its line end and the start of
// the next command. The limit is low, because these bytes must be copied again.
constexpr size_t kFollowingBytes = size_t{16} << 10;

}  // namespace

ClientInput::Room ClientInput::room(bool is_authenticated) {
  if (!is_authenticated) return {{}, kUnknownBytesMax - std::min(kUnknownBytesMax, size())};
  if (!is_kept()) return {{}, kReadBytes};
  const std::span<char> place = place_behind();
  if (place.empty()) return {{}, kReadBytes};
  const size_t following_bytes = big_arrives() ? kFollowingBytes : 0;
  return {place, std::min(place.size() + following_bytes, kBigReadBytes)};
}

std::span<char> ClientInput::place_behind() {
  if (begin_big_argument({block_.data + begin_, kept_bytes()})) {
    end_ = begin_ + announced_.body_offset;
    resize(kept_bytes());
  }
  if (big_arrives()) return big_->missing();
  const size_t missing = std::min(awaited_bytes(), kRoomAtOnceMax);
  // If only a few bytes of a command are missing, they are read into memory that is allocated
  // already.
  if (missing < kBigPartBytes && free_bytes() < kReadBytes) return {};
  make_room(std::max(missing, kBigPartBytes), kReadBytes);
  return {block_.data + end_, block_.capacity_bytes - end_};
}

void ClientInput::commit(size_t size_bytes) {
  if (big_arrives()) return big_->commit(size_bytes);
  end_ += size_bytes;
}

// Returns whether the incomplete argument gets separate memory, if so many bytes of its request
// have arrived.
bool ClientInput::gets_big_argument(size_t received_bytes) const {
  const auto [end, body_offset] = announced_;
  if (big_ || body_offset == 0 || end <= received_bytes + kBigRestBytes) return false;
  const size_t size_bytes = end - body_offset - kLineEndBytes;
  return size_bytes >= BigArgument::kBytesMin &&
         (size_bytes <= kRoomAtOnceMax || received_bytes >= body_offset + kRoomAtOnceMax);
}

// If the incomplete argument is big enough, allocates a BigArgument for it and moves its received
// bytes from `request` there. Returns whether it did.
bool ClientInput::begin_big_argument(std::string_view request) {
  if (!gets_big_argument(request.size())) return false;
  const auto [end, body_offset] = announced_;
  const size_t size_bytes = end - body_offset - kLineEndBytes;
  core::keyspace::ByteBuffer memory;
  if (!memory.resize_for_overwrite(size_bytes)) return false;
  big_ = std::make_unique<BigArgument>(std::move(memory), body_offset);
  std::string_view begun = request.substr(body_offset);
  big_->take_from(begun);
  return true;
}

size_t ClientInput::awaited_bytes() const {
  if (big_arrives()) return 0;
  const size_t announced_bytes = announced_.end + whole_argument_bytes();
  const size_t missing_bytes = announced_bytes - std::min(announced_bytes, size());
  return gets_big_argument(size()) ? missing_bytes : std::min(missing_bytes, kRoomAtOnceMax);
}

std::string_view ClientInput::join(std::string_view fresh) {
  if (!is_kept()) return fresh;
  if (big_arrives()) big_->take_from(fresh);
  if (!fresh.empty()) {
    make_room(fresh.size(), 0);
    std::memcpy(block_.data + end_, fresh.data(), fresh.size());
    end_ += fresh.size();
  }
  return {block_.data + begin_, kept_bytes()};
}

void ClientInput::keep(std::string_view rest, bool is_authenticated, AnnouncedBytes announced) {
  announced_ = is_authenticated ? announced : AnnouncedBytes{};
  if (!is_kept()) {
    if (rest.empty()) return;
    begin_ = end_ = 0;
    // For a client that has not logged in, the buffer immediately gets its maximum size, because
    // growth in steps would exceed the maximum.
    if (!is_authenticated) resize(kUnknownBytesMax);
    // A big argument gets separate memory only after kBigPartBytes of it have arrived. The client
    // will then probably send the rest.
    const bool is_begun = rest.size() >= announced_.body_offset + kBigPartBytes;
    if (is_begun && begin_big_argument(rest)) rest = rest.substr(0, announced_.body_offset);
    make_room(rest.size(), 0);
    std::memcpy(block_.data, rest.data(), rest.size());
    end_ = rest.size();
    return;
  }
  // The big argument is freed, because the first request, to which it belongs, has been executed.
  if (rest.size() < kept_bytes()) big_.reset();
  begin_ = end_ - rest.size();
  if (begin_ == end_) begin_ = end_ = 0;
  // Frees memory that a big command used. Some memory is retained, because a client that sends a
  // pipeline often needs it again.
  constexpr size_t kKeptForMore = 4 * kReadBytes;
  const size_t announced_bytes = announced_.end + kReadBytes + Stream::kExtraBytesMax;
  const size_t kept = is_kept() ? std::max(kKeptForMore, announced_bytes) : kReadBytes;
  if (block_.capacity_bytes > std::max(kept, 2 * kept_bytes())) resize(kept_bytes());
}

void ClientInput::forget() {
  begin_ = end_ = 0;
  big_.reset();
  resize(0);
}

bool ClientInput::give_back_free() {
  if (free_bytes() == 0) return false;
  if (big_arrives()) {
    const size_t received_bytes = big_->received_bytes();
    if (received_bytes >= kRoomAtOnceMax && received_bytes > big_->missing_bytes()) return false;
    // The received bytes of the big argument are moved back into the common buffer. Parsing of the
    // argument restarts when more bytes arrive.
    const std::unique_ptr<BigArgument> big = std::move(big_);
    resize(kept_bytes() + big->received_bytes());
    std::memcpy(block_.data + end_, big->text().data(), big->received_bytes());
    end_ += big->received_bytes();
  }
  resize(kept_bytes());
  return true;
}

void ClientInput::make_room(size_t fresh_bytes, size_t spare_bytes) {
  if (block_.capacity_bytes - end_ >= fresh_bytes) return;
  const size_t needed = kept_bytes() + fresh_bytes;
  if (needed <= block_.capacity_bytes) return move_to_front();
  // The buffer grows by at least an eighth, so that each byte is moved a constant number of times
  // on average.
  resize(std::max(needed + spare_bytes, block_.capacity_bytes + block_.capacity_bytes / 8));
}

void ClientInput::resize(size_t capacity_bytes) {
  if (capacity_bytes == block_.capacity_bytes) return;
  move_to_front();
  block_ = core::resize(block_, capacity_bytes, end_);
}

void ClientInput::move_to_front() {
  if (begin_ == 0) return;
  std::memmove(block_.data, block_.data + begin_, kept_bytes());
  end_ -= begin_;
  begin_ = 0;
}

}  // namespace server::net
