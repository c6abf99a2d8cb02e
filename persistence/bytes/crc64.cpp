// SPDX-License-Identifier: MIT
#include "persistence/bytes/crc64.h"

#include <isa-l/crc64.h>

namespace persistence {

uint64_t crc64(uint64_t crc, std::string_view bytes) {
  if (bytes.empty()) return crc;
  // The library inverts the checksum before and after its calculation. Redis does not, so the
  // initial value and the result are inverted again here.
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  return ~crc64_jones_refl(~crc, data, bytes.size());
}

}  // namespace persistence
