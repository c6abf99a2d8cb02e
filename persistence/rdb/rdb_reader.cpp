// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <new>
#include <utility>

#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/foreign_values.h"
#include "persistence/rdb/rdb_decoders.h"
#include "persistence/rdb/rdb_entry.h"
#include "persistence/rdb/rdb_format.h"

namespace persistence {
namespace {

using core::keyspace::EntryPtr;

// The longest name or value of an AUX field. A longer value, such as a script of an old release, is
// skipped. A longer name is an error.
constexpr uint64_t kAuxBytesMax = uint64_t{1} << 20;
// A batch of keys is submitted to the decoding threads once it has at least this size.
constexpr size_t kBatchBytes = size_t{256} << 10;
// The maximum encoded size of a key, with its value, in a batch. The reader decodes larger keys
// directly into their entries.
constexpr uint64_t kBatchedKeyBytesMax = uint64_t{16} << 20;

class RdbReader {
 public:
  RdbReader(ByteSource& source, RdbVisitor& visitor, const core::MemoryBudget& budget,
            const RdbReadOptions& options)
      : reader_(source, {options.buffer_bytes, options.checks_sum, [this] { report(); }}),
        values_(reader_, budget, options.builds_values),
        visitor_(visitor),
        options_(options) {
    if (options.thread_count < 2) return;
    decoders_ = std::make_unique<RdbDecoders>(
        options.thread_count - 1,
        [this, &budget](const RdbBatch& batch) { return decode(batch, budget); });
    batch_ = decoders_->empty_batch();
  }

  core::Result<RdbReadResult> read() {
    header();
    while (reader_.ok() && !is_done_) record();
    hand_over_batch();
    if (reader_.ok()) drain();
    if (reader_.ok()) footer();
    if (!reader_.ok()) return reader_.error();
    result_.total.bytes = reader_.offset();
    if (!options_.may_be_followed && !reader_.at_end()) {
      reader_.fail("bytes follow the end of the snapshot");
      return reader_.error();
    }
    return std::move(result_);
  }

 private:
  void header() {
    std::array<char, rdb::kHeaderBytes> bytes{};
    if (!reader_.read(bytes)) return;
    const std::string_view header(bytes.data(), bytes.size());
    result_.is_valkey = header.starts_with(rdb::kValkeyMagic);
    const size_t magic_bytes = result_.is_valkey ? rdb::kValkeyMagic.size() : rdb::kMagic.size();
    if (!result_.is_valkey && !header.starts_with(rdb::kMagic)) {
      return reader_.fail("this is no snapshot: it does not begin with REDIS or VALKEY");
    }
    const char* end = header.data() + header.size();
    const auto parsed = std::from_chars(header.data() + magic_bytes, end, result_.version);
    if (parsed.ec != std::errc() || parsed.ptr != end || result_.version == 0) {
      return reader_.fail("the snapshot's version is no number from 1 up");
    }
    const bool is_valkey = result_.is_valkey || result_.version >= rdb::kFirstValkeyVersion;
    dialect_ = is_valkey ? RdbDialect::kValkey : RdbDialect::kRedis;
  }

  void record() {
    const uint8_t opcode = reader_.u8();
    if (!reader_.ok() || key_attribute(opcode)) return;
    constexpr uint8_t kFirstOpcode = rdb::kHashTemplateOrUpdate;
    if (opcode >= kFirstOpcode) return file_record(opcode);
    key(opcode);
    attributes_ = RdbKeyAttributes{.database = attributes_.database};
  }

  // Reads an attribute that precedes the key it applies to.
  bool key_attribute(uint8_t opcode) {
    constexpr int64_t kSecondMs = 1000;
    switch (opcode) {
      case rdb::kExpirySeconds:
        attributes_.expires_at_ms = static_cast<int32_t>(reader_.u32()) * kSecondMs;
        break;
      case rdb::kExpiryMilliseconds:
        attributes_.expires_at_ms = reader_.i64();
        break;
      case rdb::kFrequency:
        attributes_.use_count = reader_.u8();
        return true;
      case rdb::kIdle:
        attributes_.idle_s = reader_.length();
        return true;
      default:
        return false;
    }
    // An expiry before 1970 is replaced by 0, which is also in the past. A negative number is not
    // kept, because -1 would mean no expiry.
    attributes_.expires_at_ms = std::max<int64_t>(attributes_.expires_at_ms, 0);
    return true;
  }

  void file_record(uint8_t opcode) {
    switch (opcode) {
      case rdb::kEnd:
        is_done_ = true;
        return;
      case rdb::kSelectDatabase:
        attributes_.database = reader_.length();
        return;
      case rdb::kResizeDatabase:
        return resize();
      case rdb::kAux:
        return aux();
      case rdb::kModuleAux:
        return module_aux();
      case rdb::kFunction:
        if (accept_foreign("function library")) reader_.string().skip();
        return;
      case rdb::kSlotInfo:
        for (int i = 0; i < 3; ++i) reader_.length();
        return;
      case rdb::kKeyMetaOrSlotImport:
        return key_meta_or_slot_import();
      case rdb::kHashTemplateOrUpdate:
        if (dialect_ == RdbDialect::kRedis) return templates_.read(reader_);
        [[fallthrough]];
      default:
        return reader_.fail(fmt::format("records of kind {} cannot be read", opcode));
    }
  }

  void resize() {
    const uint64_t keys = reader_.length();
    const uint64_t expires = reader_.length();
    if (!reader_.ok()) return;
    // The minimum size of a key: its type, and the lengths of its name and value.
    constexpr uint64_t kKeyBytesMin = 3;
    const uint64_t keys_max = reader_.left_bound() / kKeyBytesMin;
    visitor_.size_hint(attributes_.database, std::min(keys, keys_max), std::min(expires, keys_max));
  }

  void aux() {
    StringReader name_string = reader_.string();
    if (name_string.size() > kAuxBytesMax) return reader_.fail("an AUX field's name is too long");
    std::string name(name_string.size(), '\0');
    name_string.read(name);
    StringReader value_string = reader_.string();
    if (value_string.size() > kAuxBytesMax) {
      value_string.skip();
      return;
    }
    std::string value(value_string.size(), '\0');
    if (!value_string.read(value)) return;
    // The visitor gets all earlier keys before the AUX field, because the field applies to the keys
    // that follow.
    hand_over_batch();
    drain();
    if (reader_.ok()) check(visitor_.aux(name, value));
  }

  void module_aux() {
    // Modules write their AUX field even if they do not use it, so a skipped field does not
    // indicate lost data.
    reader_.length();
    ModuleReader(reader_).skip_to_end();
  }

  void key_meta_or_slot_import() {
    if (dialect_ == RdbDialect::kRedis) return skip_key_meta(reader_);
    reader_.string().skip();
    for (uint64_t left = reader_.length(); left > 0 && reader_.ok(); --left) {
      reader_.length();
      reader_.length();
    }
  }

  void key(uint8_t type) {
    if (type != kStringType && type != kModuleType) return foreign_key(type);
    decoders_ != nullptr ? batched_key(type) : unbatched_key(type);
  }

  // Decodes the next key directly into its entry.
  void unbatched_key(uint8_t type) {
    const std::string name = values_.name();
    if (!reader_.ok()) return;
    if (type == kModuleType) return module_key(name);
    if (EntryPtr entry = values_.string(name)) hand_over(std::move(entry));
  }

  void module_key(const std::string& name) {
    const uint64_t id = reader_.length();
    if (!reader_.ok()) return;
    if (!is_filter_module(id)) return foreign_module(id);
    if (EntryPtr entry = values_.filter(name, id)) hand_over(std::move(entry));
  }

  // Appends the bytes of the next key to the batch, without decoding the key.
  void batched_key(uint8_t type) {
    const size_t begin = batch_.bytes.size();
    reader_.begin_capture(batch_.bytes, kBatchedKeyBytesMax);
    reader_.string().skip();
    const uint64_t id = type == kModuleType ? reader_.length() : 0;
    const bool is_foreign = reader_.ok() && type == kModuleType && !is_filter_module(id);
    if (type == kStringType) {
      reader_.string().skip();
    } else if (!is_foreign) {
      ModuleReader(reader_).skip_to_end();
    }
    if (!reader_.end_capture()) return unbatched_key(type);
    if (!reader_.ok()) return;
    if (is_foreign) {
      batch_.bytes.shrink(begin);
      return foreign_module(id);
    }
    batch_.keys.push_back({type, attributes_});
    ++result_.total.keys;
    if (batch_.bytes.size() >= kBatchBytes) hand_over_batch();
  }

  // Decodes the keys of a batch. May be called on any thread.
  core::Result<> decode(const RdbBatch& batch, const core::MemoryBudget& budget) {
    StreamReader reader(batch.bytes.view());
    RdbEntryReader values(reader, budget, options_.builds_values);
    for (const RdbBatch::Key& key : batch.keys) {
      const std::string name = values.name();
      EntryPtr entry =
          key.type == kStringType ? values.string(name) : values.filter(name, reader.length());
      if (!reader.ok()) return reader.error();
      key.attributes.apply_to(*entry);
      if (auto visited = visitor_.entry(key.attributes.database, std::move(entry)); !visited) {
        return visited;
      }
    }
    return {};
  }

  // Submits the current batch. The visitor has received all keys of the batch when drain() returns.
  void hand_over_batch() {
    if (decoders_ == nullptr || batch_.keys.empty()) return;
    if (!decoders_->submit(std::move(batch_))) drain();
    batch_ = decoders_->empty_batch();
  }

  void drain() {
    if (decoders_ != nullptr) check(decoders_->drain());
  }

  void foreign_key(uint8_t type) {
    // For an unknown type skip_foreign_value() reports the error. Advice to skip such values would
    // be wrong, because the server cannot skip them.
    const bool can_skip = can_skip_foreign(type, dialect_);
    if (can_skip && !accept_foreign(foreign_type_name(type, dialect_))) return;
    reader_.string().skip();
    if (reader_.ok()) skip_foreign_value(reader_, type, dialect_, templates_);
  }

  // Reports a value of a foreign type. Returns false if foreign types are rejected.
  bool accept_foreign(std::string_view type) {
    if (options_.foreign_types == ForeignTypes::kRefuse) {
      reader_.fail(
          fmt::format(
              "this server has no values of type '{}'; rdb-foreign-types skip leaves them out",
              type),
          core::ErrorCode::kUnsupported);
      return false;
    }
    visitor_.foreign(attributes_.database, type);
    return true;
  }

  void foreign_module(uint64_t id) {
    if (accept_foreign("module " + module_name(id))) ModuleReader(reader_).skip_to_end();
  }

  void hand_over(EntryPtr entry) {
    attributes_.apply_to(*entry);
    ++result_.total.keys;
    check(visitor_.entry(attributes_.database, std::move(entry)));
  }

  void footer() {
    if (result_.version < rdb::kFirstVersionWithSum && !result_.is_valkey) return;
    const uint64_t computed = reader_.sum();
    const uint64_t stored = reader_.u64();
    result_.has_sum = stored != 0;
    if (!reader_.ok() || !result_.has_sum || !options_.checks_sum) return;
    if (computed != stored) {
      reader_.fail(
          fmt::format("the check sum is {:016x}, the bytes give {:016x}", stored, computed));
    }
  }

  void check(const core::Result<>& visited) {
    if (!visited) reader_.fail(visited.error().message, visited.error().code);
  }
  void report() const {
    if (options_.on_progress) options_.on_progress({reader_.offset(), result_.total.keys});
  }

  StreamReader reader_;
  RdbEntryReader values_;
  RdbVisitor& visitor_;
  const RdbReadOptions& options_;
  RdbReadResult result_;
  RdbDialect dialect_ = RdbDialect::kRedis;
  HashTemplates templates_;
  RdbKeyAttributes attributes_;
  bool is_done_ = false;
  RdbBatch batch_;
  // The decoding threads; null if only one thread reads. This must be the last member, because the
  // threads use all members before it.
  std::unique_ptr<RdbDecoders> decoders_;
};

}  // namespace

core::Result<RdbReadResult> read_rdb(ByteSource& source, RdbVisitor& visitor,
                                     const core::MemoryBudget& budget,
                                     const RdbReadOptions& options) {
  try {
    return RdbReader(source, visitor, budget, options).read();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to read a snapshot", core::ErrorCode::kOutOfMemory};
  }
}

}  // namespace persistence
