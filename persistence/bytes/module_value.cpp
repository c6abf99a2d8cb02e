// SPDX-License-Identifier: MIT
#include "persistence/bytes/module_value.h"

#include <cassert>

namespace persistence {
namespace {

constexpr std::string_view kNameAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t kNameSize = 9;
constexpr unsigned kVersionBits = 10;
constexpr unsigned kCharacterBits = 6;

constexpr uint64_t kEnd = 0;
constexpr uint64_t kSigned = 1;
constexpr uint64_t kUnsigned = 2;
constexpr uint64_t kFloat = 3;
constexpr uint64_t kDouble = 4;
constexpr uint64_t kString = 5;

}  // namespace

uint64_t module_id(std::string_view name, unsigned version) {
  assert(name.size() == kNameSize);
  uint64_t id = 0;
  for (const char c : name) id = id << kCharacterBits | kNameAlphabet.find(c);
  return id << kVersionBits | version;
}

std::string module_name(uint64_t id) {
  std::string name(kNameSize, ' ');
  id >>= kVersionBits;
  for (size_t i = kNameSize; i-- > 0; id >>= kCharacterBits) name[i] = kNameAlphabet[id & 63];
  return name;
}

bool ModuleReader::expect(uint64_t tag) {
  if (reader_.length() != tag) reader_.fail("a module's value has another field than expected");
  return reader_.ok();
}

uint64_t ModuleReader::unsigned_number() {
  return expect(kUnsigned) ? reader_.length() : 0;
}

double ModuleReader::real_number() {
  return expect(kDouble) ? reader_.f64() : 0;
}

StringReader ModuleReader::string() {
  return expect(kString) ? reader_.string() : StringReader::plain(reader_, 0);
}

void ModuleReader::end() {
  expect(kEnd);
}

void ModuleReader::skip_to_end() {
  while (reader_.ok()) {
    switch (reader_.length()) {
      case kEnd:
        return;
      case kSigned:
      case kUnsigned:
        reader_.length();
        break;
      case kFloat:
        reader_.u32();
        break;
      case kDouble:
        reader_.u64();
        break;
      case kString:
        reader_.string().skip();
        break;
      default:
        reader_.fail("a module's value has a field of an unknown kind");
    }
  }
}

void ModuleWriter::unsigned_number(uint64_t value) {
  writer_.length(kUnsigned);
  writer_.length(value);
}

void ModuleWriter::real_number(double value) {
  writer_.length(kDouble);
  writer_.f64(value);
}

void ModuleWriter::string(std::string_view bytes, Packing packing) {
  writer_.length(kString);
  writer_.string(bytes, packing);
}

void ModuleWriter::string_head(uint64_t size_bytes) {
  writer_.length(kString);
  writer_.length(size_bytes);
}

void ModuleWriter::end() {
  writer_.length(kEnd);
}

}  // namespace persistence
