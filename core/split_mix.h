// SPDX-License-Identifier: MIT
//
// SplitMix64: a fast generator of random numbers, for choices that need no secrecy.
//
// Thread safety: none; each thread uses a generator of its own.
// Source: Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators".
#pragma once

#include <cstdint>

namespace core {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t draw() {
    uint64_t bits = state_ += 0x9E3779B97F4A7C15U;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBU;
    return bits ^ bits >> 31;
  }

 private:
  uint64_t state_;
};

}  // namespace core
