// SPDX-License-Identifier: MIT
//
// ConnectionFixture: a client on a socket pair, and a log whose progress the test controls.
//
//   EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
//
// Thread safety: one thread.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/clients_fixture.h"

namespace server::net {

class ConnectionFixture : public ClientsFixture {
 protected:
  ConnectionFixture() { session_->authenticated = true; }

  void send(std::string_view bytes) const { remote_.send(bytes); }
  // Returns the received bytes, followed by "(end)" if the server has closed the connection.
  std::string received() { return remote_.received(); }
  std::string answer(std::string_view request) {
    send(request);
    serve();
    return received();
  }
  // As answer(), for a request of any size, as long as the server reads it.
  std::string answer_in_parts(std::string_view request, size_t part_size) {
    std::string all;
    for (size_t start = 0; start < request.size() && !is_closed(); start += part_size) {
      all += answer(request.substr(start, part_size));
    }
    return all;
  }
  bool is_closed() const { return thread_.connections.count() == 0; }
  // From now on replies wait until the log has reached `offset`.
  void append_to_log(uint64_t offset) { log_.end = offset; }

  Remote& remote_ = connect();
  SocketPair& sockets_ = remote_.sockets;
  Session* session_ = &remote_.session();
  Connection* connection_ = remote_.connection;
};

}  // namespace server::net
