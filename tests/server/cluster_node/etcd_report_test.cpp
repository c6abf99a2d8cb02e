// SPDX-License-Identifier: MIT
#include "server/cluster_node/etcd_report.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/captured_log.h"

namespace server::cluster {
namespace {

constexpr int64_t kMinuteUs = 60'000'000;
const EtcdError kAccepted;
const EtcdError kDenied{EtcdCode::kPermissionDenied, "etcdserver: permission denied"};
const EtcdError kUnreachable{EtcdCode::kUnavailable, "http://a:1: connect: refused"};

class EtcdReportTest : public testing::Test {
 protected:
  void record(EtcdRequest request, const EtcdError& error) {
    report_.record(request, error, now_us_);
  }

  const CapturedLog log_;
  int64_t now_us_ = 5;
  EtcdReport report_;
};

TEST_F(EtcdReportTest, LogsARefusalOnceAMinute) {
  for (int i = 0; i < 3; ++i) record(EtcdRequest::kChange, kDenied);
  EXPECT_EQ(log_.count("etcd refuses a change: etcdserver: permission denied; grant"), 1U);
  now_us_ += kMinuteUs;
  record(EtcdRequest::kChange, kDenied);
  EXPECT_EQ(log_.count("etcd refuses a change"), 2U);
  record(EtcdRequest::kChange, {EtcdCode::kResourceExhausted, "database space exceeded"});
  EXPECT_EQ(log_.count("alarm disarm"), 1U);
}

TEST_F(EtcdReportTest, EachKindOfRequestMayBeRefused) {
  for (const EtcdRequest request :
       {EtcdRequest::kRead, EtcdRequest::kChange, EtcdRequest::kLease, EtcdRequest::kWatch}) {
    EXPECT_TRUE(report_.accepts(now_us_));
    record(request, kDenied);
    EXPECT_FALSE(report_.accepts(now_us_));
    record(request == EtcdRequest::kRead ? EtcdRequest::kLease : EtcdRequest::kRead, kAccepted);
    EXPECT_FALSE(report_.accepts(now_us_)) << "another kind is accepted";
    record(request, kAccepted);
  }
  EXPECT_TRUE(report_.accepts(now_us_));
  EXPECT_EQ(log_.count("accepts this node's requests again"), 4U);
}

TEST_F(EtcdReportTest, RefusalThatIsNotRepeatedIsForgotten) {
  record(EtcdRequest::kChange, kDenied);
  now_us_ += kMinuteUs - 1;
  EXPECT_FALSE(report_.accepts(now_us_));
  now_us_ += 1;
  EXPECT_TRUE(report_.accepts(now_us_));
  record(EtcdRequest::kRead, kAccepted);
  EXPECT_EQ(log_.count("again"), 1U);
}

TEST_F(EtcdReportTest, SilenceIsLoggedAndIsNoRefusal) {
  for (int i = 0; i < 3; ++i) record(EtcdRequest::kRead, kUnreachable);
  EXPECT_EQ(log_.count("etcd does not answer: http://a:1: connect: refused"), 1U);
  EXPECT_TRUE(report_.accepts(now_us_));
  for (int i = 0; i < 3; ++i) record(EtcdRequest::kRead, kAccepted);
  EXPECT_EQ(log_.count("again"), 1U);
}

TEST_F(EtcdReportTest, LostLeasesAndRevisionsAreNoErrors) {
  record(EtcdRequest::kLease, {EtcdCode::kNotFound, "requested lease not found"});
  record(EtcdRequest::kWatch, {EtcdCode::kOutOfRange, "compacted"});
  EXPECT_TRUE(report_.accepts(now_us_));
  EXPECT_EQ(log_.count("etcd"), 0U);
  record(EtcdRequest::kRead, {EtcdCode::kNotFound, "Not Found"});
  EXPECT_EQ(log_.count("etcd refuses a read: Not Found"), 1U);
  EXPECT_FALSE(report_.accepts(now_us_));
}

TEST_F(EtcdReportTest, NumberOfLinesIsLimited) {
  for (int i = 0; i < 100; ++i) {
    record(EtcdRequest::kRead, {EtcdCode::kUnavailable, "text " + std::to_string(i)});
  }
  EXPECT_EQ(log_.count("etcd does not answer"), 32U);
}

}  // namespace
}  // namespace server::cluster
