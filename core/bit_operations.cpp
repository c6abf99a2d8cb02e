// SPDX-License-Identifier: MIT
#include "core/bit_operations.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

namespace core::bitmap {
namespace {

using Bytes = std::span<const uint8_t>;

// With this size a block of `out` stays in the first-level cache while all sources are combined
// into it.
constexpr size_t kBlockBytes = 8192;

// Returns the bytes of a source that lie in the block [start, start + length): fewer than `length`
// bytes near the end of the source.
Bytes block_of(Bytes source, size_t start, size_t length) {
  if (start >= source.size()) return {};
  return source.subspan(start, std::min(length, source.size() - start));
}

// out[i] = fold(out[i], source[i]). Missing bytes of the source count as zero. The loop is plain
// and its ranges do not alias, so the compiler vectorizes it.
template <class Fold>
void fold_into(std::span<uint8_t> out, Bytes source, Fold fold) {
  assert(source.size() <= out.size());
  uint8_t* __restrict target = out.data();
  const uint8_t* __restrict from = source.data();
  const size_t common = source.size();
  for (size_t i = 0; i < common; ++i) target[i] = static_cast<uint8_t>(fold(target[i], from[i]));
  for (size_t i = common; i < out.size(); ++i) {
    target[i] = static_cast<uint8_t>(fold(target[i], uint8_t{0}));
  }
}

// A complement is written as XOR with 0xff. With ~ the compiler would first widen each byte to 32
// bits.
constexpr auto kReplace = [](unsigned, unsigned from) { return from; };
constexpr auto kIntersect = [](unsigned target, unsigned from) { return target & from; };
constexpr auto kToggle = [](unsigned target, unsigned from) { return target ^ from; };
constexpr auto kComplement = [](unsigned, unsigned from) { return from ^ 0xffU; };
constexpr auto kOnlyFrom = [](unsigned target, unsigned from) { return from & (target ^ 0xffU); };
constexpr auto kOnlyTarget = [](unsigned target, unsigned from) { return target & (from ^ 0xffU); };

// ORs `source` into `out`. Zeros after the end of the source would not change `out`, so only the
// bytes of the source are visited.
void unite_into(std::span<uint8_t> out, Bytes source) {
  fold_into(out.first(source.size()), source,
            [](unsigned target, unsigned from) { return target | from; });
}

// `repeated` collects bits that several sources contain. These bits are removed from `out` at the
// end.
void keep_single(std::span<const Bytes> sources, size_t start, std::span<uint8_t> out) {
  std::array<uint8_t, kBlockBytes> repeated{};
  std::fill(out.begin(), out.end(), uint8_t{0});
  for (const Bytes source : sources) {
    const Bytes block = block_of(source, start, out.size());
    uint8_t* __restrict seen = out.data();
    uint8_t* __restrict again = repeated.data();
    const uint8_t* __restrict from = block.data();
    for (size_t i = 0; i < block.size(); ++i) {
      again[i] = static_cast<uint8_t>(again[i] | (seen[i] & from[i]));
      seen[i] = static_cast<uint8_t>(seen[i] | from[i]);
    }
  }
  fold_into(out, Bytes(repeated).first(out.size()), kOnlyTarget);
}

// Computes one block of the result. `out` is the block, which begins at byte `start` of the result.
void combine_block(BitOperation operation, std::span<const Bytes> sources, size_t start,
                   std::span<uint8_t> out) {
  if (operation == BitOperation::kOne) return keep_single(sources, start, out);
  const Bytes first = block_of(sources[0], start, out.size());
  const auto fold_others = [&](auto fold) {
    for (const Bytes source : sources.subspan(1)) fold(block_of(source, start, out.size()));
  };
  const auto unite = [&](Bytes block) { unite_into(out, block); };
  const auto collect_others = [&] {
    std::fill(out.begin(), out.end(), uint8_t{0});
    fold_others(unite);
  };
  switch (operation) {
    case BitOperation::kAnd:
      fold_into(out, first, kReplace);
      return fold_others([&](Bytes block) { fold_into(out, block, kIntersect); });
    case BitOperation::kOr:
      fold_into(out, first, kReplace);
      return fold_others(unite);
    case BitOperation::kXor:
      fold_into(out, first, kReplace);
      return fold_others([&](Bytes block) { fold_into(out.first(block.size()), block, kToggle); });
    case BitOperation::kNot:
      return fold_into(out, first, kComplement);
    case BitOperation::kDiff:
      collect_others();
      return fold_into(out, first, kOnlyFrom);
    case BitOperation::kDiff1:
      collect_others();
      return fold_into(out, first, kOnlyTarget);
    case BitOperation::kAndOr:
      collect_others();
      return fold_into(out, first, kIntersect);
    case BitOperation::kOne:
      return;
  }
}

}  // namespace

void combine(BitOperation operation, std::span<const std::span<const uint8_t>> sources,
             std::span<uint8_t> out) {
  assert(operation != BitOperation::kNot || sources.size() == 1);
  if (sources.empty()) {
    std::fill(out.begin(), out.end(), uint8_t{0});
    return;
  }
  for (size_t start = 0; start < out.size(); start += kBlockBytes) {
    combine_block(operation, sources, start,
                  out.subspan(start, std::min(kBlockBytes, out.size() - start)));
  }
}

}  // namespace core::bitmap
