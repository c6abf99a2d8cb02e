// SPDX-License-Identifier: MIT
#include "protocol/request_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "protocol/error_texts.h"
#include "tests/support/sanitized.h"

namespace {

using protocol::Limits;
using protocol::protocol_error;
using protocol::RequestParser;
namespace request_fault = protocol::request_fault;
using testing::ElementsAre;
using Status = RequestParser::Status;
using Arguments = std::vector<std::string>;
using Requests = std::vector<Arguments>;

struct Outcome {
  Requests requests;
  std::string error;
  size_t consumed = 0;

  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << testing::PrintToString(outcome.requests) << " error '" << outcome.error
             << "' consumed " << outcome.consumed;
}

// Parses `bytes` in pieces that end at the offsets in `cuts`. Each call of the parser gets a new
// buffer that has exactly the size of the unparsed bytes. So ASan detects a stale view or a read
// past the end.
Outcome feed(RequestParser& parser, std::string_view bytes, const std::vector<size_t>& cuts) {
  Outcome outcome;
  std::vector<std::string_view> words = {"before"};
  size_t begin = 0;
  for (const size_t end : cuts) {
    for (;;) {
      const auto block = std::make_unique<char[]>(end - begin);
      bytes.copy(block.get(), end - begin, begin);
      const Status status = parser.parse({block.get(), end - begin}, words);
      begin += parser.consumed();
      if (status == Status::kError) outcome.error = parser.error();
      if (status != Status::kRequest) break;
      // The parser appends to `words` and leaves the earlier content unchanged.
      EXPECT_EQ(words.front(), "before");
      outcome.requests.emplace_back(words.begin() + 1, words.end());
      words.resize(1);
    }
    if (!outcome.error.empty()) break;
  }
  EXPECT_EQ(words.size(), 1U) << "an incomplete request gives no arguments";
  outcome.consumed = begin;
  return outcome;
}

Status status_of(RequestParser& parser, std::string_view bytes) {
  std::vector<std::string_view> words;
  return parser.parse(bytes, words);
}

struct Conditions {
  bool authenticated = true;
  Limits limits = {};
};

Outcome parse(std::string_view bytes, std::vector<size_t> cuts, const Conditions& conditions = {}) {
  RequestParser parser(conditions.limits);
  parser.set_authenticated(conditions.authenticated);
  cuts.push_back(bytes.size());
  return feed(parser, bytes, cuts);
}

// Parses the bytes whole, byte by byte, and divided in two at each offset. All results must agree.
Outcome parse_every_way(std::string_view bytes, const Conditions& conditions = {}) {
  const Outcome whole = parse(bytes, {}, conditions);
  std::vector<size_t> every;
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    every.push_back(cut);
    EXPECT_EQ(parse(bytes, {cut}, conditions), whole) << "cut at " << cut << " of " << bytes;
  }
  EXPECT_EQ(parse(bytes, every, conditions), whole) << "byte by byte: " << bytes;
  return whole;
}

Requests requests(std::string_view bytes) {
  const Outcome outcome = parse_every_way(bytes);
  EXPECT_EQ(outcome.error, "");
  return outcome.requests;
}

std::string error(std::string_view bytes, const Conditions& conditions = {}) {
  return parse_every_way(bytes, conditions).error;
}

std::string encode(const Arguments& arguments) {
  std::string out = fmt::format("*{}\r\n", arguments.size());
  for (const auto& argument : arguments) {
    out += fmt::format("${}\r\n{}\r\n", argument.size(), argument);
  }
  return out;
}

TEST(RequestParserTest, ArrayOfBulkStringsIsARequest) {
  EXPECT_THAT(requests("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"),
              ElementsAre(ElementsAre("SET", "k", "")));
}

TEST(RequestParserTest, LengthsOfEveryDigitCountAreRead) {
  for (const size_t size : {0, 1, 9, 10, 11, 99, 100, 101, 999, 1000}) {
    const Arguments arguments{"SET", std::string(size, 'x')};
    EXPECT_EQ(requests(encode(arguments)), Requests{arguments});
  }
  const Arguments large{"SET", std::string(1234567, 'x'), "EX"};
  EXPECT_EQ(parse(encode(large), {}).requests, Requests{large});
  EXPECT_EQ(parse(encode(large), {12, 20, 1000, 1234567}).requests, Requests{large});
}

// Returns the words of the next request in `bytes`. `bytes` lacks the argument at `offset`, which
// the parser finds in `text` instead.
Arguments parse_apart(RequestParser& parser, std::string_view bytes, size_t offset,
                      std::string_view text) {
  std::vector<std::string_view> words;
  parser.set_apart(offset, text);
  if (parser.parse(bytes, words) != Status::kRequest) return {};
  return {words.begin(), words.end()};
}

TEST(RequestParserTest, ABodyMayLieApart) {
  const std::string text = "*1\r\n$4\r\nPING\r\n";
  const std::string before = "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$14\r\n";
  const std::string after = "\r\n$2\r\nNX\r\n";
  const Arguments expected{"SET", "k", text, "NX"};
  const std::string ping = encode({"PING"});
  RequestParser parser;
  // partial() announces the size of the big argument as soon as the bytes before the argument are
  // parsed. After set_apart() the parser parses these bytes again.
  EXPECT_EQ(status_of(parser, before), Status::kNeedMore);
  EXPECT_EQ(parser.partial().parsed_bytes, before.size());
  EXPECT_EQ(parser.partial().needed_bytes, before.size() + text.size() + 2);
  for (int i = 0; i < 2; ++i) {
    for (size_t size = before.size(); size < before.size() + after.size(); ++size) {
      EXPECT_EQ(parse_apart(parser, (before + after).substr(0, size), before.size(), text),
                Arguments{});
      EXPECT_LE(parser.partial().needed_bytes, before.size() + after.size());
    }
    EXPECT_EQ(parse_apart(parser, before + after + ping, before.size(), text), expected);
    EXPECT_FALSE(parser.words_are_in_buffer());
    EXPECT_EQ(parser.consumed(), before.size() + after.size());
    // The next request does not lack an argument, so it is parsed as usual.
    EXPECT_EQ(feed(parser, ping, {ping.size()}).requests, Requests{{"PING"}});
    EXPECT_TRUE(parser.words_are_in_buffer());
  }
  parser.set_apart(before.size(), text);
  parser.reset();
  EXPECT_EQ(feed(parser, ping, {ping.size()}).requests, Requests{{"PING"}});
}

TEST(RequestParserTest, ArgumentsHoldAnyBytes) {
  const Arguments arguments{std::string("\0\r\n$1\r\n", 7), "\xff*3\r\n"};
  EXPECT_EQ(requests(encode(arguments)), Requests{arguments});
}

TEST(RequestParserTest, PipelineYieldsItsRequestsInOrder) {
  EXPECT_THAT(requests("*1\r\n$4\r\nPING\r\nGET a\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"),
              ElementsAre(ElementsAre("PING"), ElementsAre("GET", "a"), ElementsAre("GET", "b")));
}

TEST(RequestParserTest, ManyArgumentsAreRead) {
  for (const size_t count : {8, 9, 10, 99, 100, 255, 256, 257, 5000}) {
    const Arguments arguments(count, "item");
    const std::string bytes = encode(arguments);
    EXPECT_EQ(parse(bytes, {}).requests, Requests{arguments});
    EXPECT_EQ(parse(bytes, {bytes.size() / 2}).requests, Requests{arguments});
    EXPECT_EQ(parse(bytes + bytes, {bytes.size() + 7}).requests, (Requests{arguments, arguments}));
  }
}

TEST(RequestParserTest, EmptyRequestsAreSkippedAndConsumed) {
  for (const char* bytes : {"*0\r\n", "*-1\r\n", "*-5\r\n", "\r\n", "\n", "  \t\r\n"}) {
    const Outcome outcome = parse_every_way(bytes);
    EXPECT_TRUE(outcome.requests.empty());
    EXPECT_EQ(outcome.consumed, std::string_view(bytes).size()) << bytes;
  }
}

TEST(RequestParserTest, NoRequestLeavesStateForTheNext) {
  const std::vector<std::string> pieces{"*0\r\n",   "\r\n",      "*-1\r\n",
                                        "PING\r\n", "'a' b\r\n", "*1\r\n$4\r\nECHO\r\n"};
  const Requests meanings{{}, {}, {}, {"PING"}, {"a", "b"}, {"ECHO"}};
  for (size_t i = 0; i < pieces.size() * pieces.size() * pieces.size(); ++i) {
    std::string bytes;
    Requests expected;
    for (size_t rest = i, n = 0; n < 3; ++n, rest /= pieces.size()) {
      bytes += pieces[rest % pieces.size()];
      const auto& meaning = meanings[rest % pieces.size()];
      if (!meaning.empty()) expected.push_back(meaning);
    }
    for (const bool authenticated : {false, true}) {
      EXPECT_EQ(parse_every_way(bytes, {.authenticated = authenticated}).requests, expected);
    }
  }
}

TEST(RequestParserTest, LineEndsAreAsLenientAsRedis) {
  EXPECT_THAT(requests("*1\r\n$4\rXPINGab"), ElementsAre(ElementsAre("PING")));
  EXPECT_THAT(requests("*1\rX$4\r\nPING\r\n"), ElementsAre(ElementsAre("PING")));
  EXPECT_THAT(requests("PING\nPING\r\r\n"), ElementsAre(ElementsAre("PING"), ElementsAre("PING")));
}

TEST(RequestParserTest, MalformedHeadersGetTheErrorsOfRedis) {
  const std::string multibulk = protocol_error(request_fault::kInvalidCount);
  for (const char* count : {"x", "", "+1", "01", "-0", " 1", "1 ", "2147483648",
                            "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(error(std::string("*") + count + "\r\n"), multibulk) << count;
  }
  const std::string bulk = protocol_error(request_fault::kInvalidSize);
  for (const char* size : {"x", "", "-1", "+1", "04", "-0", "4\nPING", "536870913",
                           "9223372036854775808", "10000000000"}) {
    EXPECT_EQ(error(std::string("*1\r\n$") + size + "\r\n"), bulk) << size;
  }
  EXPECT_EQ(error("*1\r\nx4\r\n"), protocol_error("expected '$', got 'x'"));
  EXPECT_EQ(error("*2\r\n$1\r\na\r\n:1\r\n"), protocol_error("expected '$', got ':'"));
  EXPECT_EQ(error("*1\r\n'\r\n"), protocol_error("expected '$', got '''"));
}

TEST(RequestParserTest, ErrorNeverHoldsALineBreak) {
  EXPECT_EQ(error("*1\r\n\r\n"), protocol_error("expected '$', got ' '"));
  EXPECT_EQ(error("*1\r\n\n\r\n"), protocol_error("expected '$', got ' '"));
}

TEST(RequestParserTest, LargestLegalAnnouncementsAreAwaited) {
  EXPECT_EQ(error("*2147483647\r\n"), "");
  EXPECT_EQ(error("*1\r\n$536870912\r\n"), "");
}

TEST(RequestParserTest, UnauthenticatedClientsAnnounceLittle) {
  const Conditions stranger{.authenticated = false};
  EXPECT_EQ(error("*10\r\n", stranger), "");
  EXPECT_EQ(error("*11\r\n", stranger), protocol_error(request_fault::kUnauthenticatedCount));
  EXPECT_EQ(error("*2147483648\r\n", stranger), protocol_error(request_fault::kInvalidCount));
  EXPECT_EQ(error("*1\r\n$16384\r\n", stranger), "");
  EXPECT_EQ(error("*1\r\n$16385\r\n", stranger),
            protocol_error(request_fault::kUnauthenticatedSize));
  EXPECT_EQ(error("*1\r\n$536870913\r\n", stranger), protocol_error(request_fault::kInvalidSize));
  const std::string whole = encode({"AUTH", std::string(16385, 'x')});
  EXPECT_EQ(parse(whole, {}, stranger).error, protocol_error(request_fault::kUnauthenticatedSize));
}

TEST(RequestParserTest, AuthenticationLiftsTheLimitsAtOnce) {
  RequestParser parser;
  parser.set_authenticated(false);
  const std::string many = encode(Arguments(11, "x"));
  EXPECT_EQ(status_of(parser, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"), Status::kRequest);
  parser.set_authenticated(true);
  EXPECT_EQ(status_of(parser, many), Status::kRequest);
  parser.set_authenticated(false);
  EXPECT_EQ(status_of(parser, many), Status::kError);
}

TEST(RequestParserTest, ReportsTheSizesOfAPartialRequest) {
  RequestParser parser;
  std::vector<std::string_view> words;
  const auto partial_of = [&](std::string_view buffered) {
    parser.reset();
    EXPECT_EQ(parser.parse(buffered, words), RequestParser::Status::kNeedMore);
    const RequestParser::Partial partial = parser.partial();
    return std::array{partial.parsed_bytes, partial.argument_bytes, partial.needed_bytes};
  };
  EXPECT_EQ(partial_of("*2"), (std::array<size_t, 3>{0, 0, 0}));
  EXPECT_EQ(partial_of("*2\r\n$3\r\nGET\r\n"), (std::array<size_t, 3>{13, 3, 0}));
  EXPECT_EQ(partial_of("*2\r\n$3\r\nGET\r\n$9\r\nab"), (std::array<size_t, 3>{17, 3, 28}));
  ASSERT_EQ(parser.parse("*2\r\n$3\r\nGET\r\n$9\r\nabcdefghi\r\n", words),
            RequestParser::Status::kRequest);
  EXPECT_EQ(parser.partial().argument_bytes, 0U);
  EXPECT_EQ(parser.partial().parsed_bytes, 0U);
}

TEST(RequestParserTest, ReportsWhereArgumentsAreStored) {
  RequestParser parser;
  const auto are_in_buffer = [&parser](std::string_view request) {
    EXPECT_EQ(status_of(parser, request), RequestParser::Status::kRequest) << request;
    return parser.words_are_in_buffer();
  };
  EXPECT_TRUE(are_in_buffer("SET a b\r\n"));
  EXPECT_FALSE(are_in_buffer("SET a \"b\"\r\n"));
  EXPECT_TRUE(are_in_buffer("*1\r\n$1\r\nb\r\n"));
  EXPECT_FALSE(are_in_buffer("SET 'a' b\r\n"));
  EXPECT_TRUE(are_in_buffer("GET a\r\n"));
  EXPECT_EQ(status_of(parser, "*1\r\n$1\r\n"), RequestParser::Status::kNeedMore);
  EXPECT_TRUE(are_in_buffer("*1\r\n$1\r\nb\r\n"));
}

TEST(RequestParserTest, LimitsChangeAtRunTime) {
  RequestParser parser;
  Limits limits;
  limits.bulk_size_max_bytes = 3;
  parser.set_limits(limits);
  EXPECT_EQ(status_of(parser, "*1\r\n$3\r\nGET\r\n"), Status::kRequest);
  EXPECT_EQ(status_of(parser, "*1\r\n$4\r\nPING\r\n"), Status::kError);
  parser.reset();
  limits.bulk_size_max_bytes = 4;
  parser.set_limits(limits);
  EXPECT_EQ(status_of(parser, "*1\r\n$4\r\nPING\r\n"), Status::kRequest);
}

TEST(RequestParserTest, EndlessLinesAreRejected) {
  Conditions conditions;
  conditions.limits.inline_size_max_bytes = 64;
  const std::string digits(64, '1');
  EXPECT_EQ(error("a" + digits, conditions), protocol_error(request_fault::kLongLine));
  EXPECT_EQ(error(digits, conditions), "");
  EXPECT_EQ(error(digits + "\n", conditions), "");
  EXPECT_EQ(error(digits + "1\n", conditions), protocol_error(request_fault::kLongLine));
  EXPECT_EQ(error("*" + digits, conditions), protocol_error(request_fault::kLongCount));
  EXPECT_EQ(error("*1\r\n$" + digits, conditions), protocol_error(request_fault::kLongSize));
  EXPECT_EQ(error("*1\r\n$" + digits.substr(1), conditions), "");
}

TEST(RequestParserTest, ErrorStaysUntilReset) {
  RequestParser parser;
  EXPECT_EQ(status_of(parser, "*x\r\n"), Status::kError);
  EXPECT_EQ(status_of(parser, "PING\r\n"), Status::kError);
  EXPECT_EQ(parser.consumed(), 0u);
  parser.reset();
  EXPECT_EQ(status_of(parser, "PING\r\n"), Status::kRequest);
}

// The test calls the parser 400,000 times with up to 2 MB. A parser with quadratic time would need
// minutes.
TEST(RequestParserTest, CommandInSmallPiecesTakesLinearTime) {
  const Arguments arguments(200000, "item");
  const std::string bytes = encode(arguments);
  RequestParser parser;
  for (size_t end = 0; end < bytes.size(); end += 5) {
    ASSERT_EQ(status_of(parser, std::string_view(bytes).substr(0, end)), Status::kNeedMore);
  }
  std::vector<std::string_view> words;
  ASSERT_EQ(parser.parse(bytes, words), Status::kRequest);
  EXPECT_EQ(words.size(), arguments.size());
}

TEST(RequestParserTest, RandomBytesParseAlikeInAnyPieces) {
  constexpr uint32_t kSeed = 20240601;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  const std::string_view alphabet = "**$$\r\n\r\n\r\n0011239-x\"'\\ \xff";
  for (int round = 0; round < support::rounds(20'000, 4'000); ++round) {
    std::string bytes;
    for (size_t left = random() % 60; left > 0; --left) {
      if (random() % 8 == 0) {
        bytes += encode({"GET", std::string(random() % 12, 'k')});
      } else {
        bytes += alphabet[random() % alphabet.size()];
      }
    }
    Conditions conditions{.authenticated = random() % 2 == 0};
    conditions.limits.inline_size_max_bytes = 24;
    const Outcome whole = parse(bytes, {}, conditions);
    std::vector<size_t> cuts;
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + random() % 5) cuts.push_back(cut);
    ASSERT_EQ(parse(bytes, cuts, conditions), whole) << "seed " << kSeed << " round " << round;
    ASSERT_EQ(whole.error.find_first_of("\r\n"), std::string::npos);
  }
}

}  // namespace
