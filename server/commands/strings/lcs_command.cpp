// SPDX-License-Identifier: MIT
//
// LCS returns the longest common subsequence of two strings.
//
// Source: Wagner & Fischer, "The String-to-String Correction Problem" (JACM, 1974). If several
// subsequences are equally long, matches() selects the one that Redis 7 selects.
#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

constexpr size_t kTextSizeMax = std::numeric_limits<uint32_t>::max() - 2;

struct LcsOptions {
  bool index = false;
  bool length = false;
  bool with_match_length = false;
  int64_t match_length_min = 0;
};

// A run of bytes common to both texts, which begins at `begin` and has `size` bytes in each of
// them.
struct Match {
  size_t begin_in_a = 0;
  size_t begin_in_b = 0;
  size_t size = 0;
};

core::Result<LcsOptions> parse_lcs(Arguments arguments) {
  LcsOptions options;
  protocol::ArgumentCursor cursor(arguments);
  while (!cursor.done()) {
    if (cursor.eat_keyword("IDX")) {
      options.index = true;
    } else if (cursor.eat_keyword("LEN")) {
      options.length = true;
    } else if (cursor.eat_keyword("WITHMATCHLEN")) {
      options.with_match_length = true;
    } else if (cursor.eat_keyword("MINMATCHLEN")) {
      options.match_length_min = cursor.take_int64();
    } else {
      cursor.fail(kSyntaxError);
    }
  }
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  if (options.index && options.length) {
    return core::Error{"ERR If you want both the length and indexes, please just use IDX."};
  }
  return options;
}

// The table of dynamic programming for two texts. Cell (i, j) is the length of the longest common
// subsequence of the first i bytes of `a` and the first j bytes of `b`.
class LcsTable {
 public:
  // Returns why the table cannot be built; an empty text if it can.
  static std::string_view refusal(const Context& ctx, size_t size_a, size_t size_b) {
    if (size_a > kTextSizeMax || size_b > kTextSizeMax) return "ERR String too long for LCS";
    uint64_t bytes = 0;
    if (__builtin_mul_overflow((size_a + 1) * (size_b + 1), sizeof(uint32_t), &bytes)) {
      return kNoMemory;
    }
    if (!ctx.admission().allows_string(bytes)) {
      return "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
    }
    return ctx.admission().memory_suffices(bytes) ? "" : kNoMemory;
  }

  // Computes the table. REQUIRES: refusal() is empty. If the allocation fails, the table is
  // unusable (see operator bool).
  LcsTable(std::string_view a, std::string_view b)
      : a_(a),
        b_(b),
        width_(b.size() + 1),
        cells_(new (std::nothrow) uint32_t[(a.size() + 1) * width_]) {
    if (cells_ != nullptr) fill();
  }
  explicit operator bool() const { return cells_ != nullptr; }

  size_t length() const { return at(a_.size(), b_.size()); }
  // Returns the common runs, the last one first.
  std::vector<Match> matches() const;

  static constexpr std::string_view kNoMemory =
      "ERR Insufficient memory, failed allocating transient memory for LCS";

 private:
  uint32_t at(size_t i, size_t j) const { return cells_[i * width_ + j]; }
  void fill();

  std::string_view a_;
  std::string_view b_;
  size_t width_;
  std::unique_ptr<uint32_t[]> cells_;
};

void LcsTable::fill() {
  std::fill_n(cells_.get(), width_, 0);
  for (size_t i = 1; i <= a_.size(); ++i) {
    const uint32_t* const above = &cells_[(i - 1) * width_];
    uint32_t* const row = &cells_[i * width_];
    row[0] = 0;
    for (size_t j = 1; j < width_; ++j) {
      row[j] = a_[i - 1] == b_[j - 1] ? above[j - 1] + 1 : std::max(above[j], row[j - 1]);
    }
  }
}

std::vector<Match> LcsTable::matches() const {
  std::vector<Match> found;
  size_t i = a_.size();
  size_t j = b_.size();
  bool in_run = false;
  while (i > 0 && j > 0) {
    if (a_[i - 1] != b_[j - 1]) {
      at(i - 1, j) > at(i, j - 1) ? --i : --j;
      in_run = false;
      continue;
    }
    --i;
    --j;
    const size_t size = in_run ? found.back().size + 1 : 1;
    if (!in_run) found.emplace_back();
    found.back() = {i, j, size};
    in_run = true;
  }
  return found;
}

std::string common_bytes(std::string_view a, const std::vector<Match>& matches) {
  std::string bytes;
  for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
    bytes += a.substr(match->begin_in_a, match->size);
  }
  return bytes;
}

void answer_range(Context& ctx, size_t begin, size_t size) {
  ctx.reply.array(2);
  ctx.reply.integer(static_cast<int64_t>(begin));
  ctx.reply.integer(static_cast<int64_t>(begin + size - 1));
}

void answer_matches(Context& ctx, const LcsOptions& options, const LcsTable& table) {
  auto matches = table.matches();
  std::erase_if(matches, [&](const Match& match) {
    return static_cast<int64_t>(match.size) < options.match_length_min;
  });
  ctx.reply.map(2);
  ctx.reply.bulk("matches");
  ctx.reply.array(matches.size());
  for (const Match& match : matches) {
    ctx.reply.array(options.with_match_length ? 3 : 2);
    answer_range(ctx, match.begin_in_a, match.size);
    answer_range(ctx, match.begin_in_b, match.size);
    if (options.with_match_length) ctx.reply.integer(static_cast<int64_t>(match.size));
  }
  ctx.reply.bulk("len");
  ctx.reply.integer(static_cast<int64_t>(table.length()));
}

struct Texts {
  std::string a;
  std::string b;
};

// Copies both strings, so that no lock is held while the table is computed. The table is far bigger
// than the copies. Errors: a key holds no string, the options are wrong, or the table is too big.
core::Result<Texts> copy_texts(Context& ctx, const core::Result<LcsOptions>& options) {
  const auto lock = ctx.lock_keys();
  const Entry* const a = ctx.find(ctx.key(1));
  const Entry* const b = ctx.find(ctx.key(2));
  if ((a != nullptr && !a->is_string()) || (b != nullptr && !b->is_string())) {
    return core::Error{"ERR The specified keys must contain string values"};
  }
  // As in Redis, the keys are looked up before errors in the options are reported.
  if (!options) return options.error();
  const size_t size_a = a == nullptr ? 0 : a->string_size();
  const size_t size_b = b == nullptr ? 0 : b->string_size();
  const std::string_view refusal = LcsTable::refusal(ctx, size_a, size_b);
  if (!refusal.empty()) return core::Error{std::string(refusal)};
  Texts texts;
  core::keyspace::IntegerText scratch;
  if (a != nullptr) texts.a = a->text(scratch);
  if (b != nullptr) texts.b = b->text(scratch);
  return texts;
}

/* LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN] */
void lcs(Context& ctx) {
  const auto options = parse_lcs(ctx.args.subspan(3));
  const auto texts = copy_texts(ctx, options);
  if (!texts) return ctx.reply.error(texts.error().message);
  const LcsTable table(texts->a, texts->b);
  if (!table) return ctx.reply.error(LcsTable::kNoMemory);
  if (options->index) return answer_matches(ctx, *options, table);
  if (options->length) return ctx.reply.integer(static_cast<int64_t>(table.length()));
  ctx.reply.bulk(common_bytes(texts->a, table.matches()));
}

const Command kLcsRows[] = {
    {.name = "lcs",
     .arity = -3,
     .flags = kReadOnly,
     .keys = {{{1, 2, 1, kKeyRo | kKeyAccess}, {}}},
     .categories = kString,
     .group = "string",
     .since = "7.0.0",
     .summary = "Returns the longest common subsequence of two strings",
     .complexity = "O(N*M) where N and M are the lengths of s1 and s2, respectively",
     .syntax = "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len:integer] [WITHMATCHLEN]",
     .handler = lcs},
};

}  // namespace

const CommandFamily kLcsCommands{{}, kLcsRows};

}  // namespace server
