#include "text/json_fields.h"

#include "base/error.h"
#include "base/text.h"

namespace stretto::text {

void JsonValue::refuse(const std::string& what, const std::string& advice) const {
  throw Error(ExitCode::kBadData, place_ + (place_.ends_with(':') ? " " : ": ") + what, advice);
}

void JsonValue::require(bool right, const char* wanted) const {
  if (right) return;
  refuse(std::string("expected ") + wanted + ", got " + value_->type_name(),
         "give a file as Hugging Face's `tokenizers` saves it");
}

const std::string& JsonValue::text() const {
  require(value_->is_string(), "a string");
  return value_->get_ref<const std::string&>();
}

bool JsonValue::flag() const {
  require(value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

int64_t JsonValue::number(int64_t most) const {
  require(value_->is_number_unsigned(), "a whole number");
  const auto number = value_->get<uint64_t>();
  if (number > static_cast<uint64_t>(most)) {
    refuse(
        std::to_string(number) + " is too large: at most " + std::to_string(most) + " is allowed",
        "check the number");
  }
  return static_cast<int64_t>(number);
}

double JsonValue::real() const {
  require(value_->is_number(), "a number");
  return value_->get<double>();
}

size_t JsonValue::size() const {
  require(value_->is_array(), "a list");
  return value_->size();
}

JsonValue JsonValue::at(size_t index) const {
  require(value_->is_array(), "a list");
  if (index >= value_->size()) refuse("the list is too short", "check its length");
  return {(*value_)[index], place_ + "[" + std::to_string(index) + "]"};
}

JsonFields::JsonFields(JsonValue object) : object_(std::move(object)) {
  if (object_.json().is_object()) return;
  object_.refuse(std::string("expected an object, got ") + object_.json().type_name(),
                 "give a file as Hugging Face's `tokenizers` saves it");
}

JsonValue JsonFields::field(const std::string& key, const nlohmann::json& value) const {
  const bool is_top = object_.place().ends_with(':');
  return {value, object_.place() + (is_top ? " " : ".") + printable(key, 60)};
}

JsonValue JsonFields::get(const std::string& key) {
  known_.insert(key);
  const auto found = object_.json().find(key);
  if (found == object_.json().end()) {
    object_.refuse("no field `" + key + "`", "give a file as Hugging Face's `tokenizers` saves it");
  }
  return field(key, *found);
}

std::optional<JsonValue> JsonFields::find(const std::string& key) {
  known_.insert(key);
  const auto found = object_.json().find(key);
  if (found == object_.json().end() || found->is_null()) return std::nullopt;
  return field(key, *found);
}

bool JsonFields::flag(const std::string& key, bool absent) {
  const auto value = find(key);
  return value ? value->flag() : absent;
}

void JsonFields::done() const {
  for (const auto& [key, value] : object_.json().items()) {
    if (known_.contains(key)) continue;
    field(key, value)
        .refuse("this field is not supported",
                "remove it if the tokenizer does the same without it");
  }
}

}  // namespace stretto::text
