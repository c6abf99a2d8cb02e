// SPDX-License-Identifier: MIT
//
// Entry: one key with its value, expiry and use, in one allocation: a 34-byte header and
// the key's bytes right behind it (a 10-byte key costs 48 bytes).
//
// Invariants: an integer value is one whose decimal text is canonical, so text() gives back exactly
// what was stored; the key never changes (a rename re-creates the entry, see with_key()).
// Thread safety: guarded by the stripe lock of its key; only touch() and the bits of its use may be
// called under a shared lock by several threads; then a use may get lost.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "core/keyspace/byte_buffer.h"
#include "core/prefetch.h"

namespace core::bloom {
class ScalableFilter;
}

namespace core::keyspace {

// Expiry of a key that never expires; every other expiry is milliseconds since 1970 and >= 0.
inline constexpr int64_t kNoExpiry = -1;
// A "now" at which nothing has expired yet: for replicas and replay, where only the leader's DEL
// removes a key.
inline constexpr int64_t kIgnoreExpiry = std::numeric_limits<int64_t>::min();
// A new key has been used so often, not to be the first to go.
inline constexpr uint8_t kFirstUseCount = 5;
inline constexpr unsigned kUseCountBits = 8;
// The longest string that OBJECT ENCODING calls embstr.
inline constexpr size_t kEmbeddedStringSizeMax = 44;

// Room for the decimal text of any int64_t; scratch space of Entry::text().
using IntegerText = std::array<char, 24>;

enum class ValueKind : uint8_t {
  kInteger,  // a string that is a canonical 64-bit decimal
  kShort,    // a string of at most 15 bytes, kept in the entry
  kBytes,    // a string on the heap
  kFilter,   // a Bloom filter
};

class Entry;
struct EntryDeleter {
  void operator()(Entry* entry) const noexcept;
};
using EntryPtr = std::unique_ptr<Entry, EntryDeleter>;

class Entry {
 public:
  // A new entry holding the empty string, without expiry. Throws std::bad_alloc.
  static EntryPtr create(std::string_view key);
  // The same value, expiry and use under another name; the value moves.
  static EntryPtr with_key(EntryPtr source, std::string_view key);
  // A deep copy of value and expiry under another name, not yet used; null when memory does not
  // suffice.
  EntryPtr clone(std::string_view key) const;

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  std::string_view key() const {
    return {reinterpret_cast<const char*>(this) + kKeyOffset, key_size_};
  }
  ValueKind kind() const { return kind_; }
  bool is_string() const { return kind_ != ValueKind::kFilter; }
  bool is_filter() const { return kind_ == ValueKind::kFilter; }

  // The string value as bytes, without allocation: a view of the entry or of `scratch`, valid
  // until either changes. REQUIRES: is_string().
  std::string_view text(IntegerText& scratch) const;
  // Length of the string value. REQUIRES: is_string().
  size_t string_size() const;
  // Asks for the cache line of a value that lives outside the entry.
  void prefetch_value() const {
    if (kind_ == ValueKind::kBytes) core::prefetch(payload_.bytes.data());
    if (kind_ == ValueKind::kFilter) core::prefetch(payload_.filter);
  }
  // The number when kind() is kInteger.
  int64_t integer() const { return payload_.integer; }

  // Replaces the value; a canonical decimal integer becomes kInteger. `text` must not point into
  // this entry. False (value unchanged) when memory does not suffice.
  [[nodiscard]] bool set_string(std::string_view text);
  void set_integer(int64_t value);
  // As set_string, but never an integer: the result of INCRBYFLOAT.
  [[nodiscard]] bool set_plain_string(std::string_view text);
  // Takes over `bytes` as a raw string.
  void set_raw(ByteBuffer bytes);
  // Turns the string into mutable bytes; its encoding is raw from then on. REQUIRES: is_string().
  // Throws std::bad_alloc (at most 20 bytes are copied).
  ByteBuffer& make_raw();

  bloom::ScalableFilter& filter();
  const bloom::ScalableFilter& filter() const;
  void set_filter(std::unique_ptr<bloom::ScalableFilter> filter);

  // True when dropping the value may take long enough to be worth a background thread.
  bool is_heavy() const;

  // What OBJECT ENCODING answers: "int", "embstr" or "raw".
  std::string_view encoding() const;
  // Heap bytes of entry and value, as the allocator counts them.
  size_t memory_bytes() const;

  int64_t expires_at_ms() const { return expires_at_ms_; }
  bool has_expiry() const { return expires_at_ms_ != kNoExpiry; }
  bool expired(int64_t now_ms) const { return has_expiry() && now_ms > expires_at_ms_; }
  // Only for an entry that is in no keyspace yet; others go through Keyspace::set_expiry, which
  // counts them.
  void set_expires_at_ms(int64_t expires_at_ms) { expires_at_ms_ = expires_at_ms; }

  // When and how often it was used, as KeyUse (core/keyspace/eviction/key_use.h) packs it.
  uint32_t use_bits() const { return use_.load(std::memory_order_relaxed); }
  void set_use_bits(uint32_t bits) {
    // A hot key is read by all threads: its cache line is written when something changes.
    if (use_bits() != bits) use_.store(bits, std::memory_order_relaxed);
  }
  // A use that is not counted, at seconds on a clock of the caller's choice.
  void touch(uint32_t clock_s) {
    set_use_bits(clock_s << kUseCountBits | (use_bits() & ((1U << kUseCountBits) - 1)));
  }

 private:
  friend struct EntryDeleter;
  struct ShortText {
    std::array<char, 15> bytes;
    uint8_t size;
  };
  union Payload {
    Payload() : short_text{} {}
    ~Payload() {}
    int64_t integer;
    ShortText short_text;
    ByteBuffer bytes;
    bloom::ScalableFilter* filter;
  };

  // Where the key starts: in key_head_, behind everything else.
  static constexpr size_t kKeyOffset = 34;

  explicit Entry(std::string_view key);
  ~Entry() { free_value(); }
  char* key_bytes();
  // Leaves the empty string.
  void reset_value() {
    if (kind_ == ValueKind::kBytes || kind_ == ValueKind::kFilter) free_value();
    payload_.short_text = ShortText{};
    kind_ = ValueKind::kShort;
    raw_ = false;
  }
  // Gives back what the value has outside of the entry.
  void free_value();
  void take_value(Entry& source);
  void set_short(std::string_view text);
  void set_bytes(ByteBuffer bytes, bool raw);

  Payload payload_;
  int64_t expires_at_ms_ = kNoExpiry;
  std::atomic<uint32_t> use_{kFirstUseCount};
  uint32_t key_size_;
  ValueKind kind_ = ValueKind::kShort;
  bool raw_ = false;
  // The first bytes of the key; the rest lies behind the object. Reached by its offset.
  [[maybe_unused]] std::array<char, 6> key_head_;
};

}  // namespace core::keyspace
