// SPDX-License-Identifier: MIT
//
// ModuleReader and ModuleWriter: values of modules, which are lists of tagged fields under a
// 64-bit id that packs the type's name and the version of its encoding.
//
// Invariants: a field whose tag is not the expected one is a fault, and so is anything else than
// the end mark after the last field. An unknown module's value can always be skipped.
// Thread safety: as StreamReader and ByteWriter, which they view.
// Source: docs/formats.md, "Module values".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/stream_reader.h"

namespace persistence {

// REQUIRES: `name` is nine characters of A-Z a-z 0-9 - _; version < 1024.
uint64_t module_id(std::string_view name, unsigned version);
std::string module_name(uint64_t id);
inline unsigned module_version(uint64_t id) {
  return id & 1023;
}

class ModuleReader {
 public:
  explicit ModuleReader(StreamReader& reader) : reader_(reader) {}

  bool ok() const { return reader_.ok(); }
  uint64_t unsigned_number();
  double real_number();
  // To be read or skipped before the next field.
  StringReader string();
  // Takes the end mark.
  void end();
  // Takes all fields that are left and the end mark.
  void skip_to_end();

 private:
  bool expect(uint64_t tag);

  StreamReader& reader_;
};

class ModuleWriter {
 public:
  // Writes the id.
  ModuleWriter(ByteWriter& writer, uint64_t id) : writer_(writer) { writer_.length(id); }

  void unsigned_number(uint64_t value);
  void real_number(double value);
  void string(std::string_view bytes, Packing packing);
  // The beginning of a plain string; its bytes are then written to the ByteWriter.
  void string_head(uint64_t size_bytes);
  void end();

 private:
  ByteWriter& writer_;
};

}  // namespace persistence
