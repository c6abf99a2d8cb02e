// SPDX-License-Identifier: MIT
#include "core/keyspace/entry.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/layout_counts.h"
#include "core/keyspace/window_schedule.h"
#include "core/memory/allocation_size.h"
#include "core/number.h"
#include "core/short_bytes.h"

namespace core::keyspace {

namespace {

// Values smaller than this are freed in place, which costs less than handing the values to another
// thread. The arrays of filters are mapped from this size on, and unmapping them takes longer.
constexpr size_t kHeavyBytes = size_t{1} << 20;

size_t block_size(size_t key_offset, size_t key_size) {
  // The block has room for the whole object, even if a short key leaves the end of the object
  // unused.
  return std::max(sizeof(Entry), key_offset + key_size);
}

}  // namespace

void EntryDeleter::operator()(Entry* entry) const noexcept {
  entry->~Entry();
  std::free(entry);
}

Entry::Entry(std::string_view key) : key_size_(static_cast<uint32_t>(key.size())) {
  static_assert(sizeof(Entry) == 40, "34 bytes of header, 6 of the key");
  assert(key.size() <= UINT32_MAX);
  copy_bytes(key_bytes(), key);
}

EntryPtr Entry::create(std::string_view key) {
  void* block = std::malloc(block_size(kKeyOffset, key.size()));
  if (block == nullptr) throw std::bad_alloc();
  return EntryPtr(new (block) Entry(key));
}

EntryPtr Entry::with_key(EntryPtr source, std::string_view key) {
  EntryPtr renamed = create(key);
  renamed->take_value(*source);
  renamed->expires_at_ms_ = source->expires_at_ms_;
  renamed->set_use_bits(source->use_bits());
  return renamed;
}

EntryPtr Entry::clone(std::string_view key) const {
  EntryPtr copy = create(key);
  copy->expires_at_ms_ = expires_at_ms_;
  switch (kind_) {
    case ValueKind::kInteger:
      copy->set_integer(payload_.integer);
      break;
    case ValueKind::kShort:
      copy->payload_.short_text = payload_.short_text;
      break;
    case ValueKind::kBytes: {
      ByteBuffer bytes;
      if (!bytes.assign(payload_.bytes.view())) return nullptr;
      copy->set_bytes(std::move(bytes), raw_);
      break;
    }
    case ValueKind::kFilter: {
      auto filter_copy = payload_.filter->clone();
      if (filter_copy == nullptr) return nullptr;
      copy->set_filter(std::move(filter_copy));
      break;
    }
  }
  return copy;
}

// The key starts inside the object, in key_head_, and continues after the object.
char* Entry::key_bytes() {
  return reinterpret_cast<char*>(this) + kKeyOffset;
}

std::string_view Entry::text(IntegerText& scratch) const {
  assert(is_string());
  if (kind_ == ValueKind::kShort) {
    return {payload_.short_text.bytes.data(), payload_.short_text.size};
  }
  if (kind_ == ValueKind::kBytes) return payload_.bytes.view();
  const auto [end, error] =
      std::to_chars(scratch.data(), scratch.data() + scratch.size(), payload_.integer);
  assert(error == std::errc{});
  return {scratch.data(), static_cast<size_t>(end - scratch.data())};
}

size_t Entry::string_size() const {
  IntegerText scratch;
  return text(scratch).size();
}

inline void Entry::set_short(std::string_view text) {
  reset_value();
  copy_bytes(payload_.short_text.bytes.data(), text);
  payload_.short_text.size = static_cast<uint8_t>(text.size());
}

bool Entry::set_string(std::string_view text) {
  // parse_int64() accepts only the text that printing the number gives, so the number can replace
  // the text.
  if (const auto integer = parse_int64(text)) {
    set_integer(*integer);
    return true;
  }
  return set_plain_string(text);
}

void Entry::set_integer(int64_t value) {
  reset_value();
  payload_.integer = value;
  kind_ = ValueKind::kInteger;
}

bool Entry::set_plain_string(std::string_view text) {
  if (text.size() <= payload_.short_text.bytes.size()) {
    set_short(text);
    return true;
  }
  if (kind_ == ValueKind::kBytes) {
    if (!payload_.bytes.assign(text)) return false;
    raw_ = false;
    return true;
  }
  ByteBuffer bytes;
  if (!bytes.assign(text)) return false;
  set_bytes(std::move(bytes), false);
  return true;
}

ByteBuffer& Entry::make_raw() {
  if (kind_ != ValueKind::kBytes) {
    IntegerText scratch;
    ByteBuffer bytes;
    if (!bytes.assign(text(scratch))) throw std::bad_alloc();
    set_bytes(std::move(bytes), true);
  }
  raw_ = true;
  return payload_.bytes;
}

bloom::ScalableFilter& Entry::filter() {
  assert(is_filter());
  return *payload_.filter;
}

const bloom::ScalableFilter& Entry::filter() const {
  assert(is_filter());
  return *payload_.filter;
}

void Entry::set_filter(std::unique_ptr<bloom::ScalableFilter> filter) {
  assert(filter != nullptr);
  reset_value();
  payload_.filter = filter.release();
  kind_ = ValueKind::kFilter;
  LayoutCounts::of_process().add(payload_.filter->layout(), key());
  if (payload_.filter->window() != nullptr) WindowSchedule::of_process().record(key());
}

bool Entry::is_heavy() const {
  if (kind_ == ValueKind::kBytes) return payload_.bytes.size() >= kHeavyBytes;
  return kind_ == ValueKind::kFilter && payload_.filter->size_bytes() >= kHeavyBytes;
}

std::string_view Entry::encoding() const {
  if (kind_ == ValueKind::kInteger) return "int";
  if (kind_ == ValueKind::kShort) return "embstr";
  const bool embedded =
      kind_ == ValueKind::kBytes && !raw_ && payload_.bytes.size() <= kEmbeddedStringSizeMax;
  return embedded ? "embstr" : "raw";
}

size_t Entry::memory_bytes() const {
  const size_t own = allocation_size(block_size(kKeyOffset, key_size_));
  if (kind_ == ValueKind::kBytes) return own + payload_.bytes.memory_bytes();
  if (kind_ == ValueKind::kFilter) return own + payload_.filter->size_bytes();
  return own;
}

void Entry::free_value() {
  if (kind_ == ValueKind::kBytes) payload_.bytes.~ByteBuffer();
  if (kind_ == ValueKind::kFilter) {
    LayoutCounts::of_process().remove(payload_.filter->layout());
    delete payload_.filter;
  }
}

// Moves the value of `source` to this entry. `source` then holds the empty string.
void Entry::take_value(Entry& source) {
  switch (source.kind_) {
    case ValueKind::kInteger:
      set_integer(source.payload_.integer);
      break;
    case ValueKind::kShort:
      reset_value();
      payload_.short_text = source.payload_.short_text;
      break;
    case ValueKind::kBytes:
      set_bytes(std::move(source.payload_.bytes), source.raw_);
      break;
    case ValueKind::kFilter:
      set_filter(std::unique_ptr<bloom::ScalableFilter>(source.payload_.filter));
      LayoutCounts::of_process().remove(payload_.filter->layout());
      source.kind_ = ValueKind::kShort;
      break;
  }
  source.reset_value();
}

void Entry::set_bytes(ByteBuffer bytes, bool raw) {
  reset_value();
  new (&payload_.bytes) ByteBuffer(std::move(bytes));
  kind_ = ValueKind::kBytes;
  raw_ = raw;
}

}  // namespace core::keyspace
