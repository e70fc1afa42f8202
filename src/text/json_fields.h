#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace stretto::text {

/// A value of a JSON file and its place, `FILE: model.vocab`, or `FILE:` for the whole. Each getter
/// throws Error(kBadData) with that place if the value has another type.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& value, std::string place)
      : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  const nlohmann::json& json() const { return *value_; }
  bool is_null() const { return value_->is_null(); }
  bool is_string() const { return value_->is_string(); }
  bool is_list() const { return value_->is_array(); }

  const std::string& text() const;
  bool flag() const;
  /// A whole number of [0, most].
  int64_t number(int64_t most) const;
  double real() const;
  size_t size() const;  ///< of a list
  JsonValue at(size_t index) const;

  /// Error(kBadData) with the place: "<place>: <what>".
  [[noreturn]] void refuse(const std::string& what, const std::string& advice) const;

 private:
  void require(bool right, const char* wanted) const;

  const nlohmann::json* value_;
  std::string place_;
};

/// An object whose fields are all known: done() refuses those that were not asked for.
class JsonFields {
 public:
  explicit JsonFields(JsonValue object);

  const JsonValue& object() const { return object_; }
  JsonValue get(const std::string& key);  ///< throws where it is missing
  /// Nothing where the field is missing or null.
  std::optional<JsonValue> find(const std::string& key);
  bool flag(const std::string& key, bool absent);
  void done() const;

 private:
  JsonValue field(const std::string& key, const nlohmann::json& value) const;

  JsonValue object_;
  std::set<std::string> known_;
};

}  // namespace stretto::text
