// SPDX-License-Identifier: MIT
//
// Sends a load that needs little CPU, so that the server limits the throughput. Each connection has
// a thread, which sends a burst of commands, reads all replies, and repeats this for SECONDS.
//
// usage: hot_filter_load PORT LOAD KEY CONNECTIONS SECONDS
//   LOAD madd    8 BF.MADD of 100 random items each to the filter KEY
//        single  8 BF.EXISTS and 8 BF.ADD of random items, alternating, on the filter KEY
//        keys    8 SET and 8 GET, alternating, of random keys from KEY:aaaaa to KEY:ppppp
//
// Before the load `keys` starts, each key from KEY:aaaaa to KEY:ppppp must have a value of 3 bytes.
// Prints: operations, seconds, items that BF.ADD or BF.MADD reported as new, CPU seconds of this
// program. An operation is a command, or an item of BF.MADD.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRepeats = 8;
constexpr size_t kItemsPerBatch = 100;
constexpr time_t kReplyTimeoutSeconds = 30;
constexpr std::string_view kRandomItem = "????????????";
// Five letters from a to p give 16^5 keys, a little more than a million.
constexpr std::string_view kRandomKey = ":?????";

[[noreturn]] void fail(std::string_view reason) {
  fmt::print(stderr, "hot_filter_load: {}\n", reason);
  std::exit(1);
}

// Commands that are sent in one write, and the expected form of their replies.
class Burst {
 public:
  // Adds a command and its expected reply. Each `?` in a word is sent as a random letter. Each `?`
  // in the reply stands for a 0 or 1, which count_ones() counts. The other bytes of the reply give
  // its length, and its first byte gives its type.
  void add(const std::vector<std::string>& words, std::string_view reply, size_t operations) {
    request_ += fmt::format("*{}\r\n", words.size());
    for (const std::string& word : words) {
      request_ += fmt::format("${}\r\n", word.size());
      if (const size_t at = word.find('?'); at != std::string::npos) {
        random_.push_back({request_.size() + at, word.size() - at});
      }
      request_ += word + "\r\n";
    }
    types_.push_back({reply_size_, reply.front()});
    for (size_t i = 0; i < reply.size(); ++i) {
      if (reply[i] == '?') answers_.push_back(reply_size_ + i);
    }
    reply_size_ += reply.size();
    operations_ += operations;
  }

  size_t operations() const { return operations_; }
  size_t reply_size() const { return reply_size_; }

  // Returns the request with new random letters. `state` is the state of the random generator.
  std::string_view next_request(uint64_t& state) {
    for (const auto& [at, size] : random_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      uint64_t bits = state >> 16;
      for (size_t i = 0; i < size; ++i, bits >>= 4) {
        request_[at + i] = static_cast<char>('a' + (bits & 15));
      }
    }
    return request_;
  }

  bool accepts(const std::vector<char>& reply) const {
    return std::all_of(types_.begin(), types_.end(),
                       [&](const auto& type) { return reply[type.first] == type.second; });
  }

  size_t count_ones(const std::vector<char>& reply) const {
    return static_cast<size_t>(std::count_if(answers_.begin(), answers_.end(),
                                             [&](size_t at) { return reply[at] == '1'; }));
  }

 private:
  std::string request_;
  // Offset and size of each word with random letters in the request.
  std::vector<std::pair<size_t, size_t>> random_;
  // Offset and expected first byte of each reply.
  std::vector<std::pair<size_t, char>> types_;
  // Offsets of the reply bytes that are 0 or 1. count_ones() counts the bytes that are 1.
  std::vector<size_t> answers_;
  size_t reply_size_ = 0;
  size_t operations_ = 0;
};

Burst make_madd(const std::string& key) {
  std::vector<std::string> words{"BF.MADD", key};
  words.resize(words.size() + kItemsPerBatch, std::string(kRandomItem));
  std::string reply = fmt::format("*{}\r\n", kItemsPerBatch);
  for (size_t i = 0; i < kItemsPerBatch; ++i) reply += ":?\r\n";
  Burst burst;
  for (size_t i = 0; i < kRepeats; ++i) burst.add(words, reply, kItemsPerBatch);
  return burst;
}

Burst make_single(const std::string& key) {
  Burst burst;
  for (size_t i = 0; i < kRepeats; ++i) {
    burst.add({"BF.EXISTS", key, std::string(kRandomItem)}, ":0\r\n", 1);
    burst.add({"BF.ADD", key, std::string(kRandomItem)}, ":?\r\n", 1);
  }
  return burst;
}

Burst make_keys(const std::string& key) {
  Burst burst;
  const std::string random_key = key + std::string(kRandomKey);
  for (size_t i = 0; i < kRepeats; ++i) {
    burst.add({"SET", random_key, "xxx"}, "+OK\r\n", 1);
    burst.add({"GET", random_key}, "$3\r\nxxx\r\n", 1);
  }
  return burst;
}

std::optional<Burst> make_burst(std::string_view load, const std::string& key) {
  if (load == "madd") return make_madd(key);
  if (load == "single") return make_single(key);
  if (load == "keys") return make_keys(key);
  return std::nullopt;
}

int connect_to(uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail(fmt::format("cannot connect to port {}", port));
  }
  const timeval timeout{.tv_sec = kReplyTimeoutSeconds, .tv_usec = 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  return descriptor;
}

void send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("the server closed the connection");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Reads until `reply` is full. An error reply may be shorter than the expected reply. So if the
// first byte shows an error, the program ends at once instead of waiting for more bytes.
void receive_all(int descriptor, std::vector<char>& reply) {
  for (size_t filled = 0; filled < reply.size();) {
    const ssize_t size = ::recv(descriptor, reply.data() + filled, reply.size() - filled, 0);
    if (size <= 0) fail("the server closed the connection or does not answer");
    filled += static_cast<size_t>(size);
    if (reply[0] == '-') fail(std::string_view(reply.data(), filled));
  }
}

struct Counts {
  std::atomic<uint64_t> operations{0};
  std::atomic<uint64_t> ones{0};
};

// Each connection has its own copy of `burst`, because next_request() changes the random letters in
// it.
void run_connection(int descriptor, Burst burst, uint64_t seed, Clock::time_point end,
                    Counts& counts) {
  std::vector<char> reply(burst.reply_size());
  uint64_t operations = 0;
  uint64_t ones = 0;
  for (uint64_t state = seed; Clock::now() < end;) {
    send_all(descriptor, burst.next_request(state));
    receive_all(descriptor, reply);
    if (!burst.accepts(reply)) fail("a reply is not of the expected type");
    operations += burst.operations();
    ones += burst.count_ones(reply);
  }
  ::close(descriptor);
  counts.operations += operations;
  counts.ones += ones;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Burst> burst = argc == 6 ? make_burst(argv[2], argv[3]) : std::nullopt;
  if (!burst) {
    fmt::print(stderr, "usage: {} PORT madd|single|keys KEY CONNECTIONS SECONDS\n", argv[0]);
    return 2;
  }
  std::vector<int> descriptors(std::strtoull(argv[4], nullptr, 10));
  for (int& descriptor : descriptors) {
    descriptor = connect_to(static_cast<uint16_t>(std::strtoul(argv[1], nullptr, 10)));
  }
  Counts counts;
  const double cpu_before = cpu_seconds();
  const Clock::time_point start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(std::strtod(argv[5], nullptr)));
  std::vector<std::thread> threads;
  // The seed differs from run to run, so that each run adds items that the filter does not have.
  const auto seed = static_cast<uint64_t>(start.time_since_epoch().count());
  for (size_t i = 0; i < descriptors.size(); ++i) {
    threads.emplace_back(run_connection, descriptors[i], *burst, seed + i * 1'000'003, end,
                         std::ref(counts));
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  fmt::print("{} {:.6f} {} {:.6f}\n", counts.operations.load(), elapsed.count(), counts.ones.load(),
             cpu_seconds() - cpu_before);
  return 0;
}
