// SPDX-License-Identifier: MIT
//
// Linked into the coverage build with --wrap=_exit: writes the line counters before _exit().
extern "C" {
void __gcov_dump();
[[noreturn]] void __real__exit(int status);

[[noreturn]] void __wrap__exit(int status) {
  __gcov_dump();
  __real__exit(status);
}
}
