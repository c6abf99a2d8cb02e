// SPDX-License-Identifier: MIT
#include "server/cluster/json_fields.h"

#include <fmt/format.h>

namespace server::cluster {
namespace {

namespace json = boost::json;

}  // namespace

void refuse_json(std::string_view name, std::string_view wanted) {
  throw JsonFault{fmt::format("'{}' is no {}", name, wanted)};
}

JsonField::JsonField(const json::object& object, std::string_view name)
    : name_(name), value_(object.if_contains(name)) {
  if (value_ != nullptr && value_->is_null()) value_ = nullptr;
}

const json::value& JsonField::value() const {
  if (value_ == nullptr) throw JsonFault{fmt::format("'{}' is missing", name_)};
  return *value_;
}

const json::object& JsonField::object() const {
  if (const json::object* object = value().if_object()) return *object;
  refuse_json(name_, "object");
}

const json::array& JsonField::array() const {
  if (const json::array* array = value().if_array()) return *array;
  refuse_json(name_, "array");
}

std::string JsonField::text() const {
  if (const json::string* text = value().if_string()) return {text->data(), text->size()};
  refuse_json(name_, "string");
}

std::string JsonField::text_or(std::string_view absent) const {
  return exists() ? text() : std::string(absent);
}

std::vector<std::string> JsonField::texts() const {
  std::vector<std::string> texts;
  for (const json::value& item : array()) texts.push_back(JsonField(item, name_).text());
  return texts;
}

uint64_t JsonField::number(uint64_t most) const {
  boost::system::error_code failed;
  const auto number = value().to_number<uint64_t>(failed);
  if (failed || number > most) refuse_json(name_, fmt::format("number up to {}", most));
  return number;
}

uint64_t JsonField::number_or(uint64_t absent, uint64_t most) const {
  return exists() ? number(most) : absent;
}

bool JsonField::flag_or(bool absent) const {
  if (!exists()) return absent;
  if (const bool* flag = value_->if_bool()) return *flag;
  refuse_json(name_, "boolean");
}

json::object parse_json_object(std::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) throw JsonFault{fmt::format("larger than {} bytes", bytes_max)};
  boost::system::error_code failed;
  json::value value = json::parse(text, failed);
  if (failed) throw JsonFault{"not JSON: " + failed.message()};
  if (!value.is_object()) throw JsonFault{"no JSON object"};
  return std::move(value.get_object());
}

}  // namespace server::cluster
