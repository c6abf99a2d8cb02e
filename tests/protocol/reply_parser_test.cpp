// SPDX-License-Identifier: MIT
#include "protocol/reply_parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "protocol/reply_writer.h"
#include "tests/support/sanitized.h"

namespace {

using protocol::Limits;
using protocol::OutputBuffer;
using protocol::Reply;
using protocol::ReplyParser;
using protocol::ReplyWriter;
using protocol::RespVersion;
using Status = ReplyParser::Status;
using Type = Reply::Type;

// Returns a line of text that describes a reply with all its elements.
std::string describe(const Reply& reply) {
  std::string out = std::to_string(static_cast<int>(reply.type)) + "/" +
                    std::to_string(reply.integer) + "/" + std::to_string(reply.number) + "/" +
                    reply.format + "/" + reply.text;
  out += "[";
  for (const Reply& element : reply.elements) out += describe(element) + ",";
  out += "]{";
  for (const Reply& attribute : reply.attributes) out += describe(attribute) + ",";
  return out + "}";
}

// Returns the descriptions of all replies, then the error if there is one. Each call of the parser
// gets a new buffer with exactly the size of the unparsed bytes. So ASan detects reads past the end
// of the buffer.
std::string parse(std::string_view bytes, std::vector<size_t> cuts, const Limits& limits) {
  ReplyParser parser(limits);
  cuts.push_back(bytes.size());
  std::string out;
  size_t begin = 0;
  for (const size_t end : cuts) {
    for (;;) {
      const auto block = std::make_unique<char[]>(end - begin);
      bytes.copy(block.get(), end - begin, begin);
      const Status status = parser.parse({block.get(), end - begin});
      begin += parser.consumed();
      if (status == Status::kError) return out + std::string(parser.error());
      if (status == Status::kNeedMore) break;
      out += describe(parser.reply()) + "\n";
    }
  }
  return out + (begin == bytes.size() ? "" : "incomplete");
}

std::string parse_every_way(std::string_view bytes, const Limits& limits = {}) {
  const std::string whole = parse(bytes, {}, limits);
  std::vector<size_t> every;
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    every.push_back(cut);
    if (whole.find("incomplete") != std::string::npos) continue;
    EXPECT_EQ(parse(bytes, {cut}, limits), whole) << "cut at " << cut << " of " << bytes;
  }
  EXPECT_EQ(parse(bytes, every, limits), whole) << "byte by byte: " << bytes;
  return whole;
}

Reply parse_one(std::string_view bytes) {
  parse_every_way(bytes);
  ReplyParser parser;
  EXPECT_EQ(parser.parse(bytes), Status::kReply) << bytes << parser.error();
  EXPECT_EQ(parser.consumed(), bytes.size());
  return parser.reply();
}

TEST(ReplyParserTest, ScalarsOfBothVersionsAreRead) {
  EXPECT_EQ(parse_one("+OK\r\n").text, "OK");
  EXPECT_EQ(parse_one("-ERR no\r\n").type, Type::kError);
  EXPECT_TRUE(parse_one("-ERR no\r\n").is_error());
  EXPECT_EQ(parse_one(":-42\r\n").integer, -42);
  EXPECT_EQ(parse_one("$4\r\na\r\nb\r\n").text, "a\r\nb");
  EXPECT_EQ(parse_one("$0\r\n\r\n").type, Type::kBulk);
  for (const char* null : {"$-1\r\n", "*-1\r\n", "_\r\n"}) {
    EXPECT_EQ(parse_one(null).type, Type::kNull);
  }
  EXPECT_EQ(parse_one("#t\r\n").integer, 1);
  EXPECT_EQ(parse_one("#f\r\n").type, Type::kBoolean);
  EXPECT_EQ(parse_one(",1.5e3\r\n").number, 1500);
  EXPECT_TRUE(std::isinf(parse_one(",-inf\r\n").number));
  EXPECT_TRUE(std::isnan(parse_one(",nan\r\n").number));
  EXPECT_EQ(parse_one("(-123456789012345678901234567890\r\n").text,
            "-123456789012345678901234567890");
  EXPECT_TRUE(parse_one("!5\r\nERR x\r\n").is_error());
  EXPECT_EQ(parse_one("=6\r\ntxt:ab\r\n").text, "ab");
  EXPECT_EQ(parse_one("=6\r\nmkd:ab\r\n").format, "mkd");
}

TEST(ReplyParserTest, AggregatesNest) {
  const Reply reply = parse_one("*3\r\n%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n*0\r\n>1\r\n$1\r\nx\r\n");
  ASSERT_EQ(reply.elements.size(), 3u);
  EXPECT_EQ(reply.elements[0].type, Type::kMap);
  EXPECT_EQ(reply.elements[0].elements[0].text, "k");
  EXPECT_EQ(reply.elements[0].elements[1].elements[1].integer, 2);
  EXPECT_EQ(reply.elements[1].type, Type::kArray);
  EXPECT_EQ(reply.elements[2].type, Type::kPush);
}

TEST(ReplyParserTest, AttributesDescribeTheNextReply) {
  const Reply reply = parse_one("|1\r\n+ttl\r\n:9\r\n*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n");
  ASSERT_EQ(reply.attributes.size(), 2u);
  EXPECT_EQ(reply.attributes[1].integer, 9);
  EXPECT_TRUE(reply.elements[0].attributes.empty());
  EXPECT_EQ(reply.elements[1].attributes[1].text, "b");
}

TEST(ReplyParserTest, MalformedRepliesAreRejected) {
  for (const char* bytes :
       {"x\r\n",   "\r\n",      ":\r\n",        ":1x\r\n",        ":+1\r\n",
        "$x\r\n",  "$-2\r\n",   "$1\r\nabc",    "*-2\r\n",        "*x\r\n",
        "_x\r\n",  "#x\r\n",    "#\r\n",        ",x\r\n",         ",\r\n",
        "(\r\n",   "(1x\r\n",   "=2\r\nab\r\n", "=4\r\ntxtx\r\n", "!-1\r\n",
        "%-1\r\n", "+a\rb\r\n", "+a\nb\r\n",    "*?\r\n",         "$9223372036854775808\r\n"}) {
    ReplyParser parser;
    EXPECT_EQ(parser.parse(bytes), Status::kError) << bytes;
    EXPECT_FALSE(parser.error().empty());
    EXPECT_EQ(parser.parse(":1\r\n"), Status::kError);
    parse_every_way(bytes);
  }
}

TEST(ReplyParserTest, LimitsAreChecked) {
  Limits limits;
  limits.bulk_size_max_bytes = 3;
  limits.argument_count_max = 2;
  limits.reply_depth_max = 2;
  limits.inline_size_max_bytes = 10;
  const auto status = [&](std::string_view bytes) { return ReplyParser(limits).parse(bytes); };
  EXPECT_EQ(status("$3\r\nabc\r\n"), Status::kReply);
  EXPECT_EQ(status("$4\r\n"), Status::kError);
  EXPECT_EQ(status("*2\r\n"), Status::kNeedMore);
  EXPECT_EQ(status("*3\r\n"), Status::kError);
  EXPECT_EQ(status("*1\r\n*1\r\n:1\r\n"), Status::kReply);
  EXPECT_EQ(status("*1\r\n*1\r\n*1\r\n"), Status::kError);
  EXPECT_EQ(status("+0123456789"), Status::kError);
  EXPECT_EQ(status("+012345678\r\n"), Status::kReply);
}

TEST(ReplyParserTest, AnnouncedSizesAllocateNothing) {
  for (const char* bytes : {"*2147483647\r\n", "$536870912\r\n", "%2147483647\r\n:1\r\n"}) {
    EXPECT_EQ(ReplyParser().parse(bytes), Status::kNeedMore);
  }
}

// Writes a random reply, which may contain nested arrays and maps. Returns the reply that
// ReplyParser must parse from it.
class RandomReply {
 public:
  RandomReply(ReplyWriter& writer, std::mt19937& random) : writer_(writer), random_(random) {}

  Reply write(int depth) {
    const uint32_t kind = random_() % (depth > 0 ? 13 : 9);
    return kind < 9 ? write_scalar(kind) : write_aggregate(kind, depth);
  }

 private:
  bool resp3() const { return writer_.version() == RespVersion::kResp3; }

  Reply write_scalar(uint32_t kind) {
    Reply reply;
    const std::string text(random_() % 120, static_cast<char>('a' + random_() % 26));
    const auto as_text = [&](Type type, std::string value) {
      reply.type = type;
      reply.text = std::move(value);
    };
    switch (kind) {
      case 0:
        writer_.ok();
        as_text(Type::kSimple, "OK");
        break;
      case 1:
        writer_.error(text);
        as_text(Type::kError, text);
        break;
      case 2:
        reply.integer = static_cast<int32_t>(random_()) >> (random_() % 32);
        reply.type = Type::kInteger;
        writer_.integer(reply.integer);
        break;
      case 3:
        writer_.bulk(text + "\r\n");
        as_text(Type::kBulk, text + "\r\n");
        break;
      case 4:
        random_() % 2 == 0 ? writer_.null() : writer_.null_array();
        break;
      case 5:
        reply.integer = random_() % 2;
        reply.type = resp3() ? Type::kBoolean : Type::kInteger;
        writer_.boolean(reply.integer != 0);
        break;
      case 6:
        writer_.number(2.5);
        as_text(resp3() ? Type::kDouble : Type::kBulk, "2.5");
        reply.number = resp3() ? 2.5 : 0;
        break;
      case 7:
        writer_.verbatim(text, "txt");
        as_text(resp3() ? Type::kVerbatim : Type::kBulk, text);
        reply.format = resp3() ? "txt" : "";
        break;
      default:
        writer_.big_number("12345678901234567890");
        as_text(resp3() ? Type::kBigNumber : Type::kBulk, "12345678901234567890");
    }
    return reply;
  }

  Reply write_aggregate(uint32_t kind, int depth) {
    Reply reply;
    size_t count = random_() % 5;
    switch (kind) {
      case 9:
        writer_.array(count);
        reply.type = Type::kArray;
        break;
      case 10:
        writer_.map(count);
        reply.type = resp3() ? Type::kMap : Type::kArray;
        count *= 2;
        break;
      case 11:
        writer_.set(count);
        reply.type = resp3() ? Type::kSet : Type::kArray;
        break;
      default:
        writer_.push(count);
        reply.type = resp3() ? Type::kPush : Type::kArray;
    }
    while (count-- > 0) reply.elements.push_back(write(depth - 1));
    return reply;
  }

  ReplyWriter& writer_;
  std::mt19937& random_;
};

TEST(ReplyParserTest, OutputOfTheWriterIsParsed) {
  constexpr uint32_t kSeed = 17;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    OutputBuffer buffer;
    ReplyWriter writer(buffer, round % 2 == 0 ? RespVersion::kResp2 : RespVersion::kResp3);
    const std::string expected = describe(RandomReply(writer, random).write(4)) + "\n";
    std::vector<size_t> cuts;
    for (size_t cut = 0; cut < buffer.size(); cut += 1 + random() % 20) cuts.push_back(cut);
    ASSERT_EQ(parse(buffer.view(), {}, {}), expected) << "seed " << kSeed << " round " << round;
    ASSERT_EQ(parse(buffer.view(), cuts, {}), expected) << "seed " << kSeed << " round " << round;
  }
}

TEST(ReplyParserTest, RandomBytesParseAlikeInAnyPieces) {
  constexpr uint32_t kSeed = 19;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  const std::string_view alphabet = "+-:$*_#,(!=%~>|\r\n\r\n\r\n\r\n0112-tfx";
  Limits limits;
  limits.reply_depth_max = 3;
  limits.inline_size_max_bytes = 16;
  for (int round = 0; round < support::rounds(50'000, 8'000); ++round) {
    std::string bytes;
    for (size_t left = random() % 40; left > 0; --left) {
      bytes += random() % 3 == 0 ? std::string("*1\r\n")
                                 : std::string(1, alphabet[random() % alphabet.size()]);
    }
    std::vector<size_t> cuts;
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + random() % 4) cuts.push_back(cut);
    ASSERT_EQ(parse(bytes, cuts, limits), parse(bytes, {}, limits))
        << "seed " << kSeed << " round " << round;
  }
}

}  // namespace
