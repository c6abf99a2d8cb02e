// SPDX-License-Identifier: MIT
#include "server/net/client_input.h"

#include <algorithm>
#include <cstring>

#include "server/transport/stream.h"

namespace server::net {
namespace {

// A missing part of a command from which on it is read to its place at once. Below it a client that
// sends slowly must not hold a read's worth of memory.
constexpr size_t kBigPartBytes = ClientInput::kReadBytes / 4;
// One read, so that other clients have their turn.
constexpr size_t kBigReadBytes = 8 * ClientInput::kReadBytes;
// Beyond it room is made step by step: the client may never send what it has announced.
constexpr size_t kRoomAtOnceMax = size_t{32} << 20;

}  // namespace

size_t ClientInput::room(bool is_authenticated) const {
  return is_authenticated ? kReadBytes : kUnknownBytesMax - std::min(kUnknownBytesMax, size());
}

std::span<char> ClientInput::room_behind() {
  if (size() == 0) return {};
  const size_t missing = awaited_bytes();
  // Without a big part, room that is there already is used.
  if (missing < kBigPartBytes && free_bytes() < kReadBytes + Stream::kExtraBytesMax) return {};
  make_room(std::max(missing, kBigPartBytes) + Stream::kExtraBytesMax, kReadBytes);
  const size_t room = block_.capacity_bytes - end_;
  return {block_.data + end_, std::min(room, kBigReadBytes + Stream::kExtraBytesMax)};
}

size_t ClientInput::awaited_bytes() const {
  return std::min(announced_bytes_ - std::min(announced_bytes_, size()), kRoomAtOnceMax);
}

std::string_view ClientInput::join(std::string_view fresh) {
  if (size() == 0) return fresh;
  if (!fresh.empty()) {
    make_room(fresh.size(), 0);
    std::memcpy(block_.data + end_, fresh.data(), fresh.size());
    end_ += fresh.size();
  }
  return {block_.data + begin_, size()};
}

void ClientInput::keep(std::string_view rest, bool is_authenticated, size_t announced_bytes) {
  announced_bytes_ = is_authenticated ? announced_bytes : 0;
  if (size() == 0) {
    if (rest.empty()) return;
    begin_ = end_ = 0;
    // Exactly: memory that grows by steps would exceed it.
    if (!is_authenticated) resize(kUnknownBytesMax);
    make_room(rest.size(), 0);
    std::memcpy(block_.data, rest.data(), rest.size());
    end_ = rest.size();
    return;
  }
  begin_ = end_ - rest.size();
  if (begin_ == end_) begin_ = end_ = 0;
  // Gives back what a big command has taken. The rest of a pipeline usually grows again, to about
  // as much.
  constexpr size_t kKeptForMore = 4 * kReadBytes;
  const size_t announced = announced_bytes_ + kReadBytes + Stream::kExtraBytesMax;
  const size_t kept = size() == 0 ? kReadBytes : std::max(kKeptForMore, announced);
  if (block_.capacity_bytes > std::max(kept, 2 * size())) resize(size());
}

void ClientInput::forget() {
  begin_ = end_ = 0;
  resize(0);
}

void ClientInput::make_room(size_t fresh_bytes, size_t spare_bytes) {
  if (block_.capacity_bytes - end_ >= fresh_bytes) return;
  const size_t needed = size() + fresh_bytes;
  if (needed <= block_.capacity_bytes) return move_to_front();
  // By a part of itself at least, so that a byte is moved a constant number of times on average.
  resize(std::max(needed + spare_bytes, block_.capacity_bytes + block_.capacity_bytes / 8));
}

void ClientInput::resize(size_t capacity_bytes) {
  if (capacity_bytes == block_.capacity_bytes) return;
  move_to_front();
  block_ = core::resize(block_, capacity_bytes, end_);
}

void ClientInput::move_to_front() {
  if (begin_ == 0) return;
  std::memmove(block_.data, block_.data + begin_, size());
  end_ -= begin_;
  begin_ = 0;
}

}  // namespace server::net
