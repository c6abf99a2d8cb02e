// SPDX-License-Identifier: MIT
//
// A load on one filter that counts what it is told: clients on several threads add batches of
// items with BF.MADD and sum the 1 replies. bench/server_bench.py compares the sum with BF.CARD.
//
// usage: hot_filter_load PORT KEY THREADS BATCHES ITEMS_PER_BATCH
// prints: items per second, number of 1 replies
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBatchesInFlight = 8;

struct Load {
  uint16_t port = 0;
  std::string key;
  size_t batches = 0;
  size_t items_per_batch = 0;
};

int connect_to(uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fmt::print(stderr, "cannot connect to port {}\n", port);
    std::exit(1);
  }
  return descriptor;
}

void send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) std::exit(1);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Reads `count` replies of `items` integers each; the sum of the ones.
uint64_t read_replies(int descriptor, size_t count, size_t items) {
  const std::string header = fmt::format("*{}\r\n", items);
  size_t left = count * (header.size() + items * 4);
  // Every '1' is an answer but for those of the headers.
  int64_t ones = -static_cast<int64_t>(count) * std::count(header.begin(), header.end(), '1');
  static thread_local std::vector<char> buffer(64 * 1024);
  while (left > 0) {
    const ssize_t size = ::recv(descriptor, buffer.data(), std::min(buffer.size(), left), 0);
    if (size <= 0) std::exit(1);
    ones += std::count(buffer.begin(), buffer.begin() + size, '1');
    left -= static_cast<size_t>(size);
  }
  return static_cast<uint64_t>(ones);
}

// Writes the next random item's twelve digits; cheap, so that the server is what is measured.
void write_item(char* at, uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  uint64_t digits = state >> 16;
  for (int i = 0; i < 12; ++i, digits >>= 4) at[i] = static_cast<char>('a' + (digits & 15));
}

uint64_t run_client(const Load& load, uint64_t seed) {
  constexpr std::string_view kItem = "$12\r\n............\r\n";
  constexpr size_t kItemHeader = 5;
  std::string request;
  std::vector<size_t> items;  // where each item's digits stand
  for (size_t i = 0; i < kBatchesInFlight; ++i) {
    request += fmt::format("*{}\r\n$7\r\nBF.MADD\r\n${}\r\n{}\r\n", load.items_per_batch + 2,
                           load.key.size(), load.key);
    for (size_t item = 0; item < load.items_per_batch; ++item) {
      items.push_back(request.size() + kItemHeader);
      request += kItem;
    }
  }
  const int descriptor = connect_to(load.port);
  uint64_t state = seed;
  uint64_t ones = 0;
  for (size_t done = 0; done < load.batches; done += kBatchesInFlight) {
    for (const size_t at : items) write_item(request.data() + at, state);
    send_all(descriptor, request);
    ones += read_replies(descriptor, kBatchesInFlight, load.items_per_batch);
  }
  ::close(descriptor);
  return ones;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: {} PORT KEY THREADS BATCHES ITEMS_PER_BATCH\n", argv[0]);
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  const Load load{static_cast<uint16_t>(number(1)), argv[2], number(4), number(5)};
  const size_t thread_count = number(3);
  std::atomic<uint64_t> ones{0};
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] { ones += run_client(load, 1000 + i); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const double items = static_cast<double>(thread_count * load.batches * load.items_per_batch);
  fmt::print("{:.0f} {}\n", items / elapsed.count(), ones.load());
  return 0;
}
