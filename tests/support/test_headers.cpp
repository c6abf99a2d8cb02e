// SPDX-License-Identifier: MIT
//
// An empty source file, for targets that consist only of precompiled headers.
