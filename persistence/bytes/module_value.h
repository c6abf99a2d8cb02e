// SPDX-License-Identifier: MIT
//
// ModuleReader and ModuleWriter: read and write values of modules. Such a value is a list of tagged
// fields after a 64-bit id, which encodes the type's name and the version of its format.
//
// Invariants: an unexpected tag is a fault, and so is anything but the end mark after the last
// field. The value of an unknown module can always be skipped.
// Thread safety: one thread at a time may use an object. The StreamReader or ByteWriter must have
// no other user.
// Source: docs/formats.md, "Module values".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/stream_reader.h"

namespace persistence {

// Returns the id of a module's type. REQUIRES: `name` is nine characters of A-Z a-z 0-9 - _, and
// version < 1024.
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
  // Returns a reader of the next field's string. The string must be read or skipped before the next
  // field.
  StringReader string();
  // Consumes the end mark.
  void end();
  // Consumes all remaining fields and the end mark.
  void skip_to_end();

 private:
  bool expect(uint64_t tag);

  StreamReader& reader_;
};

class ModuleWriter {
 public:
  // Writes the id of the module's type.
  ModuleWriter(ByteWriter& writer, uint64_t id) : writer_(writer) { writer_.length(id); }

  void unsigned_number(uint64_t value);
  void real_number(double value);
  void string(std::string_view bytes, Packing packing);
  // Writes the header of a plain string. The caller then writes its bytes to the ByteWriter.
  void string_head(uint64_t size_bytes);
  void end();

 protected:
  ByteWriter& writer_;
};

}  // namespace persistence
