// SPDX-License-Identifier: MIT
//
// overview_of: returns the statistics of the whole server that the dashboard shows.
//
// Thread safety: any thread may call the function. The values are read one after another, so they
// may be from different moments.
#pragma once

#include <boost/json/object.hpp>

namespace server {
struct Services;
}

namespace server::admin {

// Returns INFO's fields, a histogram of the latencies of all commands, and whether the server is
// ready. The page subtracts the histogram of its previous request, to get the latencies since that
// request.
boost::json::object overview_of(Services& services);

}  // namespace server::admin
