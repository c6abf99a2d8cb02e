// SPDX-License-Identifier: MIT
//
// What the dashboard shows of the server as a whole.
//
// Thread safety: as Services; the figures are not of one instant.
#pragma once

#include <boost/json/object.hpp>

namespace server {
struct Services;
}

namespace server::admin {

// INFO's fields; how many calls of all commands took how long, for the page to compare with what it
// was told before; whether the server is ready.
boost::json::object overview_of(Services& services);

}  // namespace server::admin
