// SPDX-License-Identifier: MIT
#include "server/admin/access.h"

#include <array>

#include "server/session/acl/access_log.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

const Peer kHere{"127.0.0.1:5", true};
const Peer kElsewhere{"10.0.0.1:5", false};

class AccessTest : public CommandTest {
 protected:
  // Returns the status of the response, or 200 if the request is accepted.
  unsigned ask(const std::string& authorization, const Peer& peer = kHere,
               const std::string& host = "localhost:8080") {
    HttpRequest request;
    request.authorization = authorization;
    request.host = host;
    const Admission admission = access_.admit(request, peer);
    user_ = admission.user == nullptr ? "" : admission.user->name();
    return admission.user == nullptr ? admission.refusal.status : 200;
  }

  Access access_{services_};
  std::string user_;
};

TEST_F(AccessTest, WithoutPasswordThisMachineIsTheDefaultUser) {
  EXPECT_EQ(ask(""), 200U);
  EXPECT_EQ(user_, "default");
  EXPECT_EQ(ask("", kElsewhere), 403U);
  EXPECT_EQ(ask("", kHere, "rebound.example:8080"), 403U);
  EXPECT_EQ(ask("", kHere, ""), 403U);
  EXPECT_EQ(run({"CONFIG", "SET", "protected-mode", "no"}), kOk);
  EXPECT_EQ(ask("", kElsewhere, "bloomery.example"), 200U);
}

// The user has `nopass`, which accepts every password. So the password in the request does not
// authenticate the client.
TEST_F(AccessTest, RejectsAPasswordForAPasswordlessUser) {
  const std::string anything = "Basic ZGVmYXVsdDp4";  // the credentials "default:x" in Base64
  EXPECT_EQ(ask(anything, kElsewhere), 403U);
  EXPECT_EQ(ask(anything), 200U);
}

TEST_F(AccessTest, ProtectedModeHoldsForPasswordlessUsers) {
  ASSERT_EQ(run({"ACL", "SETUSER", "guest", "on", "nopass"}), kOk);
  const std::string guest = "Basic Z3Vlc3Q6eA==";  // the credentials "guest:x" in Base64
  EXPECT_EQ(ask(guest), 200U);
  EXPECT_EQ(user_, "guest");
  EXPECT_EQ(ask(guest, kElsewhere), 403U);
  EXPECT_EQ(ask(guest, kHere, "rebound.example:8080"), 403U);
  ASSERT_EQ(run({"CONFIG", "SET", "protected-mode", "no"}), kOk);
  EXPECT_EQ(ask(guest, kElsewhere, "bloomery.example"), 200U);
  EXPECT_EQ(user_, "guest");
}

TEST_F(AccessTest, APasswordIsAskedFor) {
  EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  EXPECT_EQ(ask(""), 401U);
  EXPECT_EQ(ask("Basic ZGVmYXVsdDp3cm9uZw=="), 401U);  // the credentials "default:wrong" in Base64
  EXPECT_EQ(ask("Basic ZGVmYXVsdDpzZWNyZXQ="), 200U);  // the credentials "default:secret" in Base64
  EXPECT_EQ(ask("basic   ZGVmYXVsdDpzZWNyZXQ", kElsewhere, "any.example"), 200U);
  EXPECT_EQ(ask("Basic OnNlY3JldA=="), 200U);  // the credentials ":secret" in Base64
  EXPECT_EQ(user_, "default");
}

TEST_F(AccessTest, FailedLoginsAreLogged) {
  EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  EXPECT_EQ(ask("Basic ZGVmYXVsdDp3cm9uZw=="), 401U);
  const auto entries = users_.log().newest(1);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].denied.object, "http");
  EXPECT_EQ(entries[0].denied.user, "default");
}

TEST_F(AccessTest, UsersOfTheAclMayAskAsTheirRulesSay) {
  EXPECT_EQ(run({"ACL", "SETUSER", "eve", "on", ">pw", "+info"}), kOk);
  ASSERT_EQ(ask("Basic ZXZlOnB3"), 200U);  // the credentials "eve:pw" in Base64
  EXPECT_EQ(user_, "eve");
  const auto eve = users_.find("eve");
  constexpr std::array<std::string_view, 1> kInfo = {"info"};
  constexpr std::array<std::string_view, 2> kScan = {"bf.scan", "0"};
  constexpr std::array<std::string_view, 1> kUnknown = {"no-such-command"};
  EXPECT_TRUE(access_.allows(*eve, kInfo));
  EXPECT_FALSE(access_.allows(*eve, kScan));
  EXPECT_FALSE(access_.allows(*eve, kUnknown));
  EXPECT_EQ(run({"ACL", "SETUSER", "eve", "off"}), kOk);
  EXPECT_EQ(ask("Basic ZXZlOnB3"), 401U);
}

TEST_F(AccessTest, ADefaultUserThatIsOffAsksForAnother) {
  EXPECT_EQ(run({"ACL", "SETUSER", "default", "off"}), kOk);
  EXPECT_EQ(ask(""), 401U);
}

TEST_F(AccessTest, OnlySoundBasicIsRead) {
  for (const char* header : {"Bearer abc", "Basic", "Basic ", "Basic ====", "Basic %%%%",
                             "Basic eA", "Basic eA==eA==", "Digest username=\"x\""}) {
    EXPECT_EQ(ask(header), 400U) << header;
  }
  EXPECT_EQ(ask("Basic " + std::string(8000, 'A')), 400U);
  const auto parsed = parse_basic("Basic dTpwOnE=");  // the credentials "u:p:q" in Base64
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->user, "u");
  EXPECT_EQ(parsed->password, "p:q");
}

TEST_F(AccessTest, OnlyAddressesAndLocalhostArePlainHosts) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:80", "[::1]",
                           "[::1]:80", "192.168.0.7:8080"}) {
    EXPECT_TRUE(is_plain_host(host)) << host;
  }
  for (const char* host : {"", ":", "evil.example", "evil.example:80", "127.0.0.1.evil.example",
                           "localhost.evil.example", "[::1].evil.example", "[", "[]:80"}) {
    EXPECT_FALSE(is_plain_host(host)) << host;
  }
}

}  // namespace
}  // namespace server::admin
