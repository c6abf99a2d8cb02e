// SPDX-License-Identifier: MIT
//
// A source for targets that consist of precompiled headers.
