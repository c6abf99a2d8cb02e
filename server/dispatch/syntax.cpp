// SPDX-License-Identifier: MIT
#include "server/dispatch/syntax.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "server/base/config/words.h"

namespace server {
namespace {

using WordKind = Syntax::Kind;

// The names of the kinds, in the order of Syntax::Kind. The notation `name:type` can state any of
// the first kStatableKinds kinds.
constexpr std::array<std::string_view, 9> kKindNames = {
    "string", "integer", "double", "key", "pattern", "unix-time", "pure-token", "oneof", "block"};
constexpr size_t kStatableKinds = 7;

// The names of values that imply a kind. Other values are strings.
constexpr std::string_view kKeys[] = {"key",     "newkey", "source", "destination",
                                      "destkey", "key1",   "key2"};
constexpr std::string_view kPatterns[] = {"pattern"};
constexpr std::string_view kIntegers[] = {
    "seconds",  "milliseconds", "offset",    "start",     "end",      "bit",       "count",
    "cursor",   "index",        "increment", "decrement", "capacity", "expansion", "timeout",
    "protover", "client-id",    "len",       "samples",   "version"};
constexpr std::string_view kDoubles[] = {"error", "ratio"};
constexpr std::string_view kUnixTimes[] = {"unix-time-seconds", "unix-time-milliseconds"};
constexpr std::pair<WordKind, std::span<const std::string_view>> kImpliedKinds[] = {
    {WordKind::kKey, kKeys},
    {WordKind::kPattern, kPatterns},
    {WordKind::kInteger, kIntegers},
    {WordKind::kDouble, kDoubles},
    {WordKind::kUnixTime, kUnixTimes}};

bool is_literal(std::string_view word) {
  return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Recursive-descent parser. The tokens are words and the marks [ ] ( ) |.
class Parser {
 public:
  explicit Parser(std::string_view notation) : rest_(notation) { advance(); }

  core::Result<std::vector<Syntax>> parse() {
    auto parts = choice_or_list();
    if (fault_.empty() && !word_.empty()) fault_ = "unexpected '" + word_ + "'";
    if (!fault_.empty()) return core::Error{fault_};
    return parts;
  }

 private:
  void advance() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    constexpr std::string_view kMarks = "[]()|";
    size_t size = rest_.empty() ? 0 : 1;
    if (size == 1 && kMarks.find(rest_.front()) == std::string_view::npos) {
      size = std::min(rest_.find_first_of(" []()|"), rest_.size());
    }
    word_ = std::string(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }

  bool at_end_of_list() const { return word_.empty() || word_ == "]" || word_ == ")"; }

  // Parses list ('|' list)*. Returns a choice if there is a bar, otherwise the list itself.
  std::vector<Syntax> choice_or_list() {
    std::vector<std::vector<Syntax>> alternatives{list()};
    while (word_ == "|") {
      advance();
      alternatives.push_back(list());
    }
    if (alternatives.size() == 1) return std::move(alternatives.front());
    Syntax choice;
    choice.kind = WordKind::kOneOf;
    for (auto& alternative : alternatives) {
      if (alternative.empty()) fault_ = "empty choice";
      choice.parts.push_back(block(std::move(alternative)));
    }
    if (!fault_.empty()) return {};
    choice.name = choice.parts.front().name;
    return {std::move(choice)};
  }

  static Syntax block(std::vector<Syntax> parts) {
    if (parts.size() == 1) return std::move(parts.front());
    Syntax result;
    result.kind = WordKind::kBlock;
    if (!parts.empty()) result.name = parts.front().name;
    result.parts = std::move(parts);
    return result;
  }

  std::vector<Syntax> list() {
    std::vector<Syntax> parts;
    while (fault_.empty() && !at_end_of_list() && word_ != "|") {
      if (word_ == "...") {
        if (parts.empty())
          fault_ = "nothing to repeat";
        else
          parts.back().multiple = true;
        advance();
        continue;
      }
      parts.push_back(item());
    }
    return parts;
  }

  Syntax item() {
    if (word_ == "[" || word_ == "(") return bracketed();
    if (is_literal(word_)) return literal();
    return value();
  }

  Syntax bracketed() {
    const bool optional = word_ == "[";
    advance();
    Syntax inner = block(choice_or_list());
    if (word_ != (optional ? "]" : ")")) fault_ = "brackets do not match";
    advance();
    inner.optional = inner.optional || optional;
    return inner;
  }

  // Parses a literal with the value that follows it: `EX seconds`.
  Syntax literal() {
    const std::string token = word_;
    advance();
    if (at_end_of_list() || word_ == "|" || word_ == "[" || word_ == "(" || word_ == "..." ||
        is_literal(word_)) {
      Syntax result;
      result.kind = WordKind::kToken;
      result.token = token;
      result.name = lower_case(token);
      return result;
    }
    Syntax result = value();
    result.token = token;
    return result;
  }

  Syntax value() {
    Syntax result;
    const size_t colon = word_.find(':');
    result.name = word_.substr(0, colon);
    if (colon == std::string::npos) {
      for (const auto& [kind, names] : kImpliedKinds) {
        if (std::ranges::find(names, result.name) != names.end()) result.kind = kind;
      }
    } else {
      const std::string type = word_.substr(colon + 1);
      const auto* const end = kKindNames.begin() + kStatableKinds;
      const auto* const found = std::find(kKindNames.begin(), end, type);
      if (found == end)
        fault_ = "unknown type '" + type + "'";
      else
        result.kind = static_cast<WordKind>(found - kKindNames.begin());
    }
    advance();
    return result;
  }

  std::string_view rest_;
  std::string word_;  // the current word or mark of the notation; empty at the end
  std::string fault_;
};

}  // namespace

std::string_view kind_name(Syntax::Kind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

core::Result<std::vector<Syntax>> parse_syntax(std::string_view notation) {
  return Parser(notation).parse();
}

}  // namespace server
