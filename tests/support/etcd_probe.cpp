// SPDX-License-Identifier: MIT
//
// etcd_probe: lets the system tests use EtcdClient. It reads one command per line from stdin, and
// writes one JSON object per line. An object with "call":N has the result of the N-th command. An
// object with "watch":N has an event of the watch that the N-th command began. Calls run
// concurrently. The program ends when its input ends.
//
// Usage: etcd_probe URL[,URL…] [--user U --password P] [--cacert F] [--limit MS]
// Commands:
//   range KEY | prefix PREFIX | put KEY VALUE [LEASE] | cas KEY MOD_REVISION VALUE
//   create KEY VALUE LEASE | grant TTL_S | keepalive LEASE | revoke LEASE
//   watch PREFIX START_REVISION | cancel WATCH
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/etcd_client.h"

namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using namespace server::cluster;

void print(json::object object) {
  fmt::print("{}\n", json::serialize(object));
  std::fflush(stdout);
}

json::array values(const std::vector<EtcdKeyValue>& kvs) {
  json::array items;
  for (const EtcdKeyValue& kv : kvs) {
    items.push_back(json::object{
        {"key", kv.key}, {"value", kv.value}, {"mod", kv.mod_revision}, {"lease", kv.lease}});
  }
  return items;
}

json::object describe(const EtcdRangeReply& reply) {
  return {{"revision", reply.revision}, {"kvs", values(reply.kvs)}};
}
json::object describe(const EtcdTxnReply& reply) {
  json::object object{{"revision", reply.revision}, {"succeeded", reply.succeeded}};
  if (!reply.succeeded && !reply.responses.empty()) {
    object["kvs"] = values(reply.responses.front().kvs);
  }
  return object;
}
json::object describe(const EtcdLeaseReply& reply) {
  return {{"lease", reply.lease}, {"ttl", reply.ttl_s}};
}
json::object describe(const EtcdRevokeReply& reply) {
  return {{"revision", reply.revision}};
}

template <class Reply>
EtcdHandler<Reply> printer(uint64_t call) {
  return [call](const EtcdResult<Reply>& result) {
    constexpr const char* kOutcomes[] = {"answered", "refused", "unknown"};
    json::object object = result.answered() ? describe(result.reply) : json::object{};
    object["call"] = call;
    object["outcome"] = kOutcomes[static_cast<int>(result.outcome)];
    if (!result.answered()) {
      object["code"] = static_cast<int>(result.error.code);
      object["message"] = result.error.message;
    }
    print(std::move(object));
  };
}

void print_news(uint64_t watch, const EtcdWatchNews& news) {
  json::object object{{"watch", watch}};
  if (const auto* changes = std::get_if<EtcdChanges>(&news)) {
    json::array events;
    for (const EtcdEvent& event : changes->events) {
      events.push_back(json::object{{"deleted", event.deleted},
                                    {"key", event.kv.key},
                                    {"value", event.kv.value},
                                    {"mod", event.kv.mod_revision}});
    }
    object["revision"] = changes->revision;
    object["events"] = std::move(events);
  } else {
    const EtcdError& error = std::get<EtcdError>(news);
    object["code"] = static_cast<int>(error.code);
    object["message"] = error.message;
  }
  print(std::move(object));
}

class Probe {
 public:
  Probe(asio::io_context& io, EtcdClient& client) : client_(client), input_(io, ::dup(0)) {
    read();
  }

 private:
  void read() {
    asio::async_read_until(input_, buffer_, '\n', [this](boost::system::error_code error, size_t) {
      if (error) std::_Exit(0);
      std::istream stream(&buffer_);
      std::string line;
      std::getline(stream, line);
      run(line);
      read();
    });
  }

  void run(const std::string& line) {
    std::istringstream words(line);
    std::string command, key, value;
    uint64_t number = 0, lease = 0;
    words >> command;
    ++calls_;
    if (command == "range" && words >> key) {
      client_.range({.key = key}, printer<EtcdRangeReply>(calls_));
    } else if (command == "prefix" && words >> key) {
      client_.range(EtcdRange::prefix(key), printer<EtcdRangeReply>(calls_));
    } else if (command == "put" && words >> key >> value) {
      words >> lease;
      client_.txn({{}, {EtcdPut{key, value, lease}}}, printer<EtcdTxnReply>(calls_));
    } else if (command == "cas" && words >> key >> number >> value) {
      client_.txn({{EtcdCompare::unchanged(key, number)}, {EtcdPut{key, value}}, {EtcdRange{key}}},
                  printer<EtcdTxnReply>(calls_));
    } else if (command == "create" && words >> key >> value >> lease) {
      client_.txn({{EtcdCompare::absent(key)}, {EtcdPut{key, value, lease}}, {EtcdRange{key}}},
                  printer<EtcdTxnReply>(calls_));
    } else {
      run_other(command, words);
    }
  }

  void run_other(const std::string& command, std::istringstream& words) {
    std::string key;
    uint64_t number = 0;
    if (command == "grant" && words >> number) {
      client_.grant(number, printer<EtcdLeaseReply>(calls_));
    } else if (command == "keepalive" && words >> number) {
      client_.keep_alive(number, printer<EtcdLeaseReply>(calls_));
    } else if (command == "revoke" && words >> number) {
      client_.revoke(number, printer<EtcdRevokeReply>(calls_));
    } else if (command == "watch" && words >> key >> number) {
      const EtcdRange range = EtcdRange::prefix(key);
      const uint64_t watch = calls_;
      numbers_.emplace_back(
          watch, client_.watch({range.key, range.range_end, number},
                               [watch](const EtcdWatchNews& news) { print_news(watch, news); }));
    } else if (command == "cancel" && words >> number) {
      for (const auto& [watch, client_number] : numbers_) {
        if (watch == number) client_.cancel(client_number);
      }
    } else {
      print({{"call", calls_}, {"outcome", "not understood"}});
    }
  }

  EtcdClient& client_;
  asio::posix::stream_descriptor input_;
  asio::streambuf buffer_;
  uint64_t calls_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> numbers_;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return EXIT_FAILURE;
  EtcdOptions options{.endpoints = split(argv[1])};
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--user") options.user = argv[i + 1];
    if (name == "--password") options.password = argv[i + 1];
    if (name == "--cacert") options.ca_file = {argv[i + 1], name};
    if (name == "--limit") options.call_limit = std::chrono::milliseconds(std::atoi(argv[i + 1]));
  }
  asio::io_context io;
  const auto client = EtcdClient::make(io, options);
  if (!client) {
    fmt::print(stderr, "{}\n", client.error().message);
    return EXIT_FAILURE;
  }
  const Probe probe(io, **client);
  io.run();
}
