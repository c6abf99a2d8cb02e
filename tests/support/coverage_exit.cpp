// SPDX-License-Identifier: MIT
//
// Replaces _exit() in the coverage build (linker option --wrap=_exit), and writes the coverage
// counters first.
extern "C" {
void __gcov_dump();
[[noreturn]] void __real__exit(int status);

[[noreturn]] void __wrap__exit(int status) {
  __gcov_dump();
  __real__exit(status);
}
}
