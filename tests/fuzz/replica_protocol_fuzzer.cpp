// SPDX-License-Identifier: MIT
//
// Aborts if the way in which the leader's bytes are divided into reads changes their meaning to the
// replica. Also aborts if the replica passes on bytes that it did not receive.
//
// The first byte of an input chooses where the stream is divided. The second byte chooses the
// replies of the leader that precede the remaining bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/replication/replica/replica_protocol.h"

namespace {

using server::ReplicaProtocol;
using Event = ReplicaProtocol::Event;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// Records the events of a link as text.
class Replica {
 public:
  Replica() : link_(request(), 0) {}

  void receive(std::string_view bytes) {
    link_.receive(bytes, 0);
    received_ += bytes.size();
    for (Event event = link_.next(); event != Event::kNone; event = link_.next()) record(event);
  }
  std::string history() {
    require(snapshot_.size() + stream_.size() <= received_, "bytes that did not come");
    return events_ + '|' + snapshot_ + '|' + stream_ + '|' + link_.take_output();
  }

 private:
  static ReplicaProtocol::Request request() {
    ReplicaProtocol::Request request;
    request.id = std::string(40, 'a');
    request.offset = 7;
    request.unit_bytes_max = 1 << 16;
    return request;
  }
  void record(Event event) {
    if (event == Event::kSnapshotBytes) {
      snapshot_ += link_.snapshot_bytes();
      return;
    }
    events_ += static_cast<char>('0' + static_cast<int>(event));
    if (event == Event::kSnapshotEnd) link_.loaded(0);
    if (event != Event::kUnit) return;
    stream_ += link_.unit().bytes();
    for (const auto& words : link_.unit().commands()) {
      require(!words.empty(), "a command without words");
    }
  }

  ReplicaProtocol link_;
  size_t received_ = 0;
  std::string events_;
  std::string snapshot_;
  std::string stream_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string greeting = "+PONG\r\n+OK\r\n+OK\r\n";
  const std::string full = greeting + "+FULLRESYNC " + std::string(40, 'b') + " 5\r\n";
  const std::string beginnings[] = {"",
                                    greeting,
                                    full,
                                    full + "$5\r\n",
                                    full + "$EOF:" + std::string(40, 'm') + "\r\n",
                                    greeting + "+CONTINUE\r\n"};
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string bytes = beginnings[data[1] % std::size(beginnings)] + std::string(rest);
  Replica whole;
  whole.receive(bytes);
  Replica cut;
  const size_t at = bytes.size() * data[0] / 255;
  cut.receive(std::string_view(bytes).substr(0, at));
  cut.receive(std::string_view(bytes).substr(at));
  require(whole.history() == cut.history(), "the cut makes a difference");
  return 0;
}
