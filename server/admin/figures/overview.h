// SPDX-License-Identifier: MIT
//
// The figures of the whole server that the dashboard shows.
//
// Thread safety: as Services; the figures are not of one instant.
#pragma once

#include <boost/json/object.hpp>

namespace server {
struct Services;
}

namespace server::admin {

// Returns INFO's fields, how many calls of all commands took how long, and whether the server is
// ready. The page compares the calls with those of the answer before.
boost::json::object overview_of(Services& services);

}  // namespace server::admin
