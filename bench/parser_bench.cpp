// SPDX-License-Identifier: MIT
//
// Measures the parsing of a request before its handler runs, and the writing of a reply.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "protocol/output_buffer.h"
#include "protocol/reply_writer.h"
#include "protocol/request_parser.h"

namespace {

std::string encode(const std::vector<std::string>& arguments) {
  protocol::OutputBuffer buffer;
  protocol::ReplyWriter writer(buffer, protocol::RespVersion::kResp2);
  writer.array(arguments.size());
  for (const auto& argument : arguments) writer.bulk(argument);
  return std::string(buffer.view());
}

// Parses a pipeline of 64 equal requests. Reports the time of one request.
void parse_pipeline(benchmark::State& state, const std::string& request) {
  constexpr int64_t kDepth = 64;
  std::string pipeline;
  for (int64_t i = 0; i < kDepth; ++i) pipeline += request;
  protocol::RequestParser parser;
  std::vector<std::string_view> words;
  for (auto _ : state) {
    std::string_view rest = pipeline;
    while (parser.parse(rest, words) == protocol::RequestParser::Status::kRequest) {
      benchmark::DoNotOptimize(words.data());
      words.clear();
      rest.remove_prefix(parser.consumed());
    }
  }
  state.SetItemsProcessed(state.iterations() * kDepth);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(pipeline.size()));
}

void BM_ParseGet(benchmark::State& state) {
  parse_pipeline(state, encode({"GET", "key:1234567"}));
}
BENCHMARK(BM_ParseGet);

void BM_ParseSet(benchmark::State& state) {
  parse_pipeline(state, encode({"SET", "key:1234567", "value-of-20-characters"}));
}
BENCHMARK(BM_ParseSet);

void BM_ParseBfAdd(benchmark::State& state) {
  parse_pipeline(state, encode({"BF.ADD", "filter", "item-0123456789"}));
}
BENCHMARK(BM_ParseBfAdd);

void BM_ParseBfMadd100(benchmark::State& state) {
  std::vector<std::string> arguments{"BF.MADD", "filter"};
  arguments.insert(arguments.end(), 100, "item-0123456789");
  parse_pipeline(state, encode(arguments));
}
BENCHMARK(BM_ParseBfMadd100);

void BM_ParseSet4KiB(benchmark::State& state) {
  parse_pipeline(state, encode({"SET", "key:1234567", std::string(4096, 'x')}));
}
BENCHMARK(BM_ParseSet4KiB);

void BM_ParseInline(benchmark::State& state) {
  parse_pipeline(state, "GET key:1234567\r\n");
}
BENCHMARK(BM_ParseInline);

// The request arrives in two halves, so the parser must resume in the middle of the request.
void BM_ParseSetInHalves(benchmark::State& state) {
  const std::string request = encode({"SET", "key:1234567", "value-of-20-characters"});
  protocol::RequestParser parser;
  std::vector<std::string_view> words;
  for (auto _ : state) {
    words.clear();
    benchmark::DoNotOptimize(parser.parse(std::string_view(request).substr(0, 20), words));
    benchmark::DoNotOptimize(parser.parse(request, words));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ParseSetInHalves);

template <class Write>
void write_replies(benchmark::State& state, Write write) {
  constexpr int64_t kDepth = 64;
  protocol::OutputBuffer buffer;
  protocol::ReplyWriter writer(buffer, protocol::RespVersion::kResp3);
  for (auto _ : state) {
    for (int64_t i = 0; i < kDepth; ++i) write(writer);
    benchmark::DoNotOptimize(buffer.data());
    benchmark::ClobberMemory();
    buffer.clear();
  }
  state.SetItemsProcessed(state.iterations() * kDepth);
}

void BM_WriteInteger1(benchmark::State& state) {
  write_replies(state, [](auto& writer) { writer.integer(1); });
}
BENCHMARK(BM_WriteInteger1);

void BM_WriteInteger7Digits(benchmark::State& state) {
  write_replies(state, [](auto& writer) { writer.integer(1234567); });
}
BENCHMARK(BM_WriteInteger7Digits);

void BM_WriteBulk20(benchmark::State& state) {
  write_replies(state, [](auto& writer) { writer.bulk("value-of-20-characte"); });
}
BENCHMARK(BM_WriteBulk20);

void BM_WriteNumber(benchmark::State& state) {
  write_replies(state, [](auto& writer) { writer.number(0.1); });
}
BENCHMARK(BM_WriteNumber);

}  // namespace

BENCHMARK_MAIN();
