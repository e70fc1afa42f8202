#include "data/squad/predictions.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/squad/squad_file.h"

namespace stretto::data {
namespace {

/// The keys of the outermost object, in their order, which the parsed object has lost.
std::vector<std::string> keys_in_order(std::string_view bytes) {
  std::vector<std::string> keys;
  const auto note = [&keys](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    const bool is_key = event == nlohmann::json::parse_event_t::key;
    if (is_key && depth == 1) keys.push_back(value.get<std::string>());
    return is_key || depth == 0;  // keeps no values
  };
  [[maybe_unused]] const auto rest = nlohmann::json::parse(bytes.begin(), bytes.end(), note);
  return keys;
}

/// A file that its reader wrote: no copy of it need be elsewhere.
nlohmann::json parse_own_file(std::string_view bytes, std::string_view where,
                              const std::string& advice) {
  try {
    return parse_json(bytes, where, kMaxSquadBytes);
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), advice);
  }
}

/// @param is_kind  whether a value has the type that is wanted, `kind` in words
template <class Value, class IsKind>
std::vector<std::pair<std::string, Value>> parse_by_id(std::string_view bytes,
                                                       std::string_view where, const char* kind,
                                                       IsKind is_kind) {
  const std::string advice =
      std::string("one JSON object is expected: {\"ID OF A QUESTION\": ") + kind + ", …}";
  const auto json = parse_own_file(bytes, where, advice + ", in which each question stands once");
  if (!json.is_object()) {
    throw Error(ExitCode::kBadData,
                std::string(where) + ": must be an object, is " + json.type_name(), advice);
  }
  std::vector<std::pair<std::string, Value>> values;
  values.reserve(json.size());
  for (const auto& id : keys_in_order(bytes)) {
    const auto& value = json.at(id);
    if (!is_kind(value)) {
      throw Error(ExitCode::kBadData,
                  std::string(where) + ": " + printable(id) + ": must be a " + kind + ", is " +
                      value.type_name(),
                  advice);
    }
    values.emplace_back(id, value.template get<Value>());
  }
  return values;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> parse_predictions(std::string_view bytes,
                                                                   std::string_view where) {
  return parse_by_id<std::string>(bytes, where, "string",
                                  [](const nlohmann::json& value) { return value.is_string(); });
}

std::vector<std::pair<std::string, double>> parse_no_answer_probabilities(std::string_view bytes,
                                                                          std::string_view where) {
  return parse_by_id<double>(bytes, where, "number",
                             [](const nlohmann::json& value) { return value.is_number(); });
}

}  // namespace stretto::data
