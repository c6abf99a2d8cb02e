// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_connection.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "tests/server/cluster/scripted_etcd.h"

namespace server::cluster {
namespace {

using std::chrono::milliseconds;

class EtcdConnectionTest : public testing::Test {
 protected:
  // "" or why it failed.
  std::string connect(const EtcdEndpoint& endpoint) {
    return run([&]() -> boost::asio::awaitable<core::Result<>> {
      return connection_->connect(endpoint, std::chrono::seconds(10));
    });
  }
  std::string exchange(std::string text) {
    const std::string failed = run([&] { return connection_->write(text); });
    if (!failed.empty()) return failed;
    return run([&] { return read(connection_, read_); });
  }

  std::shared_ptr<EtcdConnection> make() { return std::make_shared<EtcdConnection>(io_, nullptr); }

  boost::asio::io_context io_;
  std::shared_ptr<EtcdConnection> connection_ = make();
  std::string read_;

 private:
  static boost::asio::awaitable<core::Result<>> read(std::shared_ptr<EtcdConnection> connection,
                                                     std::string& out) {
    const auto bytes = co_await connection->read();
    if (!bytes) co_return bytes.error();
    out = *bytes;
    co_return core::Result<>();
  }

  template <class Start>
  std::string run(Start start) {
    bool done = false;
    std::string failed;
    boost::asio::co_spawn(io_, start(), [&](std::exception_ptr, core::Result<> result) {
      if (!result) failed = result.error().message;
      done = true;
    });
    EXPECT_TRUE(run_until(io_, [&] { return done; }));
    return failed;
  }
};

EtcdEndpoint endpoint_of(const ScriptedEtcd& etcd) {
  return *parse_etcd_endpoint(etcd.url());
}

TEST_F(EtcdConnectionTest, ConnectsWritesAndReads) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return std::string("answer"); });
  EXPECT_EQ(connect(endpoint_of(etcd)), "");
  EXPECT_TRUE(connection_->is_idle());
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), "");
  EXPECT_EQ(read_, "answer");
}

TEST_F(EtcdConnectionTest, FindsHostsByName) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return std::string("answer"); });
  EtcdEndpoint endpoint = endpoint_of(etcd);
  endpoint.host = "localhost";
  EXPECT_EQ(connect(endpoint), "");
  connection_ = make();
  // Too long a label for DNS (RFC 1035, 2.3.4): no name server is asked, which might take long.
  endpoint.host = std::string(64, 'a') + ".invalid";
  const std::string failed = connect(endpoint);
  EXPECT_TRUE(failed.starts_with("ERR address: ")) << failed;
}

TEST_F(EtcdConnectionTest, NobodyThereIsAnError) {
  EXPECT_EQ(connect({"127.0.0.1", 1, false}), "ERR connect: Connection refused");
}

TEST_F(EtcdConnectionTest, IsNotIdleOnceTheOtherSideHasGone) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return std::string(); });
  EXPECT_EQ(connect(endpoint_of(etcd)), "");
  ASSERT_TRUE(run_until(io_, [&] { return etcd.connections() == 1; }));
  etcd.hang_up();
  EXPECT_FALSE(connection_->is_idle());
}

TEST_F(EtcdConnectionTest, TimeEndsAReadUnlessDisarmed) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return std::string(); });
  EXPECT_EQ(connect(endpoint_of(etcd)), "");
  connection_->close_after(milliseconds(1));
  connection_->disarm();
  io_.restart();
  io_.run_for(milliseconds(20));
  EXPECT_TRUE(connection_->is_idle());
  connection_->close_after(milliseconds(20));
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), "ERR read: closed");
  EXPECT_EQ(exchange("x"), "ERR write: closed");
}

}  // namespace
}  // namespace server::cluster
