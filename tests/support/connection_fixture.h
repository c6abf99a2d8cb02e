// SPDX-License-Identifier: MIT
//
// ConnectionFixture: one client on a socket pair, and a simulated append log that replies wait for.
//
//   EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
//
// Thread safety: belongs to one thread.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/clients_fixture.h"

namespace server::net {

class ConnectionFixture : public ClientsFixture {
 protected:
  ConnectionFixture() { remote_.session().authenticated = true; }

  void send(std::string_view bytes) const { remote_.send(bytes); }
  // Returns the received bytes, followed by "(end)" if the server has closed the connection.
  std::string received() { return remote_.received(); }
  std::string answer(std::string_view request) {
    send(request);
    serve();
    return received();
  }
  // Sends the request in parts of `part_size` bytes, and returns all replies. Stops when the server
  // closes the connection.
  std::string answer_in_parts(std::string_view request, size_t part_size) {
    std::string all;
    for (size_t start = 0; start < request.size() && !is_closed(); start += part_size) {
      all += answer(request.substr(start, part_size));
    }
    return all;
  }
  bool is_closed() const { return thread_.connections.count() == 0; }
  // Sets the end offset of the simulated log. Replies that are added after this call wait until the
  // log is safe up to `offset`.
  void append_to_log(uint64_t offset) { log_.end = offset; }

  Remote& remote_ = connect();
  SocketPair& sockets_ = remote_.sockets;
  Connection* connection_ = remote_.connection;
};

}  // namespace server::net
