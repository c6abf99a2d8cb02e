// SPDX-License-Identifier: MIT
//
// to_json: converts a command's reply to JSON.
//
// Invariants: texts are escaped by readable(); numbers that JSON cannot represent become null.
// Thread safety: a pure function.
// Source: RFC 8259.
#pragma once

#include <boost/json/value.hpp>

#include "protocol/reply.h"

namespace server::admin {

boost::json::value to_json(const protocol::Reply& reply);

}  // namespace server::admin
