// SPDX-License-Identifier: MIT
//
// Entry: one key with its value, its expiry, and the time and count of its uses. An entry is one
// allocation: a 34-byte header followed by the key's bytes (a 10-byte key takes 48 bytes). Long
// strings and filters are separate allocations.
//
// Invariants: an integer value has canonical decimal text, so text() returns exactly the stored
// text. The key never changes; a rename creates a new entry, see with_key().
// Thread safety: guarded by the stripe lock of its key. Under a shared lock several threads may
// call touch() and read or store the use bits. An update of the use bits may then get lost.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "core/keyspace/byte_buffer.h"
#include "core/prefetch.h"

namespace core::bloom {
class ScalableFilter;
}

namespace core::keyspace {

// Expiry of a key that never expires. Every other expiry is milliseconds since 1970 and >= 0.
inline constexpr int64_t kNoExpiry = -1;
// A time at which no key has expired yet. Used by replicas and replay, where only the leader's DEL
// removes a key.
inline constexpr int64_t kIgnoreExpiry = std::numeric_limits<int64_t>::min();
// Use count of a new key. It is above zero so that new keys are not evicted first.
inline constexpr uint8_t kFirstUseCount = 5;
inline constexpr unsigned kUseCountBits = 8;
// The longest string that OBJECT ENCODING calls embstr.
inline constexpr size_t kEmbeddedStringSizeMax = 44;

// Scratch space of Entry::text(): room for the decimal text of any int64_t.
using IntegerText = std::array<char, 24>;

enum class ValueKind : uint8_t {
  kInteger,  // a string that is a canonical 64-bit decimal
  kShort,    // a string of at most 15 bytes, stored in the entry
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
  // Returns a new entry with the empty string and no expiry. Throws std::bad_alloc.
  static EntryPtr create(std::string_view key);
  // Moves value, expiry and use bits of `source` to a new entry with another key.
  static EntryPtr with_key(EntryPtr source, std::string_view key);
  // Returns a deep copy of value and expiry under another key, with the use bits of a new key.
  // Returns null if the value cannot be allocated. Throws std::bad_alloc if the entry cannot be.
  EntryPtr clone(std::string_view key) const;

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  std::string_view key() const {
    return {reinterpret_cast<const char*>(this) + kKeyOffset, key_size_};
  }
  ValueKind kind() const { return kind_; }
  bool is_string() const { return kind_ != ValueKind::kFilter; }
  bool is_filter() const { return kind_ == ValueKind::kFilter; }

  // Returns the string value as bytes, without allocation. The view refers to the entry or to
  // `scratch`, and is valid until either changes. REQUIRES: is_string().
  std::string_view text(IntegerText& scratch) const;
  // Returns the length of the string value. REQUIRES: is_string().
  size_t string_size() const;
  // Prefetches the cache line of a value that is stored outside the entry.
  void prefetch_value() const {
    if (kind_ == ValueKind::kBytes) core::prefetch(payload_.bytes.data());
    if (kind_ == ValueKind::kFilter) core::prefetch(payload_.filter);
  }
  // REQUIRES: kind() is kInteger.
  int64_t integer() const { return payload_.integer; }

  // Replaces the value. A canonical decimal integer becomes kInteger. `text` must not point into
  // this entry. Returns false, with the value unchanged, if the allocation fails.
  [[nodiscard]] bool set_string(std::string_view text);
  void set_integer(int64_t value);
  // Like set_string(), but never converts the text to kInteger, even if it is a decimal integer.
  // Used for the result of INCRBYFLOAT.
  [[nodiscard]] bool set_plain_string(std::string_view text);
  // Takes ownership of `bytes` as a raw string.
  void set_raw(ByteBuffer bytes) { set_bytes(std::move(bytes), true); }
  // Converts the string into mutable bytes; its encoding is raw from then on. REQUIRES:
  // is_string(). Copies an integer or a short string to the heap. Throws std::bad_alloc if there is
  // no memory for the copy.
  ByteBuffer& make_raw();

  bloom::ScalableFilter& filter();
  const bloom::ScalableFilter& filter() const;
  void set_filter(std::unique_ptr<bloom::ScalableFilter> filter);

  // True if freeing the value may take long enough to be worth a background thread.
  bool is_heavy() const;

  // Returns the reply of OBJECT ENCODING: "int", "embstr" or "raw".
  std::string_view encoding() const;
  // Bytes of the entry and its value. A heap block counts with the size that the allocator uses for
  // it, a filter with its accounted memory, ScalableFilter::size_bytes().
  size_t memory_bytes() const;

  int64_t expires_at_ms() const { return expires_at_ms_; }
  bool has_expiry() const { return expires_at_ms_ != kNoExpiry; }
  bool expired(int64_t now_ms) const { return has_expiry() && now_ms > expires_at_ms_; }
  // Sets the expiry of an entry that is not in a keyspace yet. For other entries use
  // Keyspace::set_expiry(), which updates the counters.
  void set_expires_at_ms(int64_t expires_at_ms) { expires_at_ms_ = expires_at_ms; }

  // Time and number of uses, as KeyUse (core/keyspace/key_use.h) packs them.
  uint32_t use_bits() const { return use_.load(std::memory_order_relaxed); }
  void set_use_bits(uint32_t bits) {
    // Many threads may read a hot key, so its cache line is written only if the bits change.
    if (use_bits() != bits) use_.store(bits, std::memory_order_relaxed);
  }
  // Sets the time of the last use to `clock_s`, in seconds of KeyUse's clock. Does not count a use.
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

  // Offset of the key in the entry. The key begins in key_head_, the last member.
  static constexpr size_t kKeyOffset = 34;

  explicit Entry(std::string_view key);
  ~Entry() { free_value(); }
  char* key_bytes();
  // Frees the value. The entry then holds the empty string.
  void reset_value() {
    if (kind_ == ValueKind::kBytes || kind_ == ValueKind::kFilter) free_value();
    payload_.short_text = ShortText{};
    kind_ = ValueKind::kShort;
    raw_ = false;
  }
  // Frees the memory that the value has outside the entry.
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
  // The first bytes of the key, accessed by offset. The other bytes follow the object.
  [[maybe_unused]] std::array<char, 6> key_head_;
};

}  // namespace core::keyspace
