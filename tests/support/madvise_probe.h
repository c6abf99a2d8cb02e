// SPDX-License-Identifier: MIT
//
// madvise_is_ignored(): whether an emulator such as qemu-user replaces madvise() by a function that
// does nothing. Tests that check which pages are resident are skipped there.
//
// Thread-safe.
#pragma once

#include <sys/mman.h>

namespace support {

inline bool madvise_is_ignored() {
  constexpr size_t kPageBytes = 4096;
  void* const page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  // Linux rejects MADV_REMOVE for private memory.
  const bool is_ignored = ::madvise(page, kPageBytes, MADV_REMOVE) == 0;
  ::munmap(page, kPageBytes);
  return is_ignored;
}

}  // namespace support
