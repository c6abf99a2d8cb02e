// SPDX-License-Identifier: MIT
//
// A command's reply as JSON.
//
// Invariants: texts are readable(); numbers that JSON does not have become null.
// Thread safety: a pure function.
// Source: RFC 8259.
#pragma once

#include <boost/json/value.hpp>

#include "protocol/reply.h"

namespace server::admin {

boost::json::value to_json(const protocol::Reply& reply);

}  // namespace server::admin
