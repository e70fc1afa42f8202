#include <cmath>
#include <nlohmann/json.hpp>

#include "config/describe.h"
#include "config/paths.h"

namespace stretto::config {
namespace {

using Json = nlohmann::ordered_json;

Json type_schema(const Key& key) {
  const auto number = [&](const char* type) {
    Json json{{"type", type}};
    if (std::isfinite(key.range.min))
      json[key.range.min_open ? "exclusiveMinimum" : "minimum"] = key.range.min;
    if (std::isfinite(key.range.max))
      json[key.range.max_open ? "exclusiveMaximum" : "maximum"] = key.range.max;
    return json;
  };
  if (std::holds_alternative<bool*>(key.value)) return {{"type", "boolean"}};
  if (std::holds_alternative<int64_t*>(key.value)) return number("integer");
  if (std::holds_alternative<double*>(key.value)) return number("number");
  if (std::holds_alternative<std::string*>(key.value)) {
    Json json{{"type", "string"}};
    if (!key.range.choices.empty()) json[key.range.open ? "examples" : "enum"] = key.range.choices;
    return json;
  }
  const bool strings = std::holds_alternative<std::vector<std::string>*>(key.value);
  const Json item = strings ? Json{{"type", "string"}} : number("number");
  return {{"anyOf", Json::array({item, {{"type", "array"}, {"items", item}}})}};
}

Json key_schema(const Key& key) {
  Json json = type_schema(key);
  json["description"] = key.help + (key.meta.unit.empty() ? "" : " [" + key.meta.unit + "]");
  json["default"] = Json::parse(value_text(key.value));
  return json;
}

Json section_schema(const Schema& defaults, const std::string& path);

Json list_schema(const List& list) {
  return {{"type", "array"},
          {"maxItems", kMostEntries},
          {"items", section_schema(*list.entry, list.path)},
          {"description", list.help}};
}

Json properties_of(const Schema& schema, const std::string& path) {
  Json properties = Json::object();
  for (const auto& key : schema.keys) {
    if (section_above(key.path) == path) properties[last_name(key.path)] = key_schema(key);
  }
  for (const auto& section : schema.sections) {
    if (section_above(section.path) != path) continue;
    Json json = section_schema(schema, section.path);
    json["description"] = section.help;
    properties[last_name(section.path)] = json;
  }
  for (const auto& list : schema.lists) {
    if (section_above(list.path) == path) properties[last_name(list.path)] = list_schema(list);
  }
  return properties;
}

Json table_schema(const Json& properties) {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

// The name of a part and its keys in the section of the switch.
Json part_schema(const Schema& defaults, const Switch& parts, const Alternative& part) {
  Json properties{{"name", key_schema(*defaults.find(parts.name_key()))}};
  properties["name"].erase("enum");
  properties["name"]["const"] = part.name;
  properties.update(properties_of(*part.schema, parts.section));
  Json table = table_schema(properties);
  if (part.name != defaults.chosen(parts)) table["required"] = Json::array({"name"});
  return table;
}

// One table for each part; without a name it is the first.
Json section_schema(const Schema& defaults, const std::string& path) {
  const Switch* parts = defaults.find_switch(path);
  if (parts == nullptr) return table_schema(properties_of(defaults, path));
  Json tables = Json::array();
  for (const auto& part : parts->alternatives) {
    tables.push_back(part_schema(defaults, *parts, part));
  }
  return tables.size() == 1 ? tables.front() : Json{{"anyOf", tables}};
}

Json include_schema() {
  return {{"description", "files that are read first, relative to this one"},
          {"anyOf", Json::array({{{"type", "string"}},
                                 {{"type", "array"}, {"items", {{"type", "string"}}}}})}};
}

// A whole file, for one part of the root.
Json file_schema(const Schema& defaults, const Switch& parts, const Alternative& part) {
  Json properties = properties_of(with_part(defaults, parts, &part), "");
  properties[parts.section] = part_schema(defaults, parts, part);
  properties["include"] = include_schema();
  Json file = table_schema(properties);
  if (part.name != defaults.chosen(parts)) file["required"] = Json::array({parts.section});
  return file;
}

Json file_schema(const Schema& defaults) {
  const Switch* parts = defaults.root_switch();
  if (parts == nullptr) {
    Json file = section_schema(defaults, "");
    file["properties"]["include"] = include_schema();
    return file;
  }
  Json files = Json::array();
  for (const auto& part : parts->alternatives) {
    files.push_back(file_schema(defaults, *parts, part));
  }
  return files.size() == 1 ? files.front() : Json{{"anyOf", files}};
}

}  // namespace

std::string json_schema(const Schema& defaults) {
  Json out{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "Stretto experiment"}};
  out.update(file_schema(defaults));
  return out.dump(2) + "\n";
}

}  // namespace stretto::config
