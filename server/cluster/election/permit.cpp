// SPDX-License-Identifier: MIT
#include "server/cluster/election/permit.h"

namespace server::cluster {

PermitTimes PermitTimes::of_timeout(int64_t timeout_us) {
  const int64_t length_us = timeout_us * 6 / 10;
  // A new leader's wait and a member's promise must outlast a permit, even if the clocks of the
  // nodes differ in speed. The margin allows a difference of 10 %. The 1 rounds it up.
  const int64_t longer_us = length_us * 11 / 10 + 1;
  return {length_us, longer_us, longer_us, timeout_us / 10};
}

void Permit::begin(uint64_t epoch, int64_t from_us) {
  epoch_ = epoch;
  from_us_ = from_us;
  until_us_ = 0;
}

}  // namespace server::cluster
