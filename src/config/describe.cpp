#include "config/describe.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "config/suggest.h"

namespace stretto::config {
namespace {

using Json = nlohmann::ordered_json;

std::string leaf(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}
std::string parent(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string key_block(const Key& key, const std::string& shown) {
  std::string text = "  " + shown + " = " + value_text(key.value) + "\n      " + key.help +
                     "\n      " + type_name(key.value);
  if (const auto range = range_text(key); !range.empty()) text += ", " + range;
  if (!key.meta.unit.empty()) text += ", in " + key.meta.unit;
  text += key.meta.change == Change::kFree ? "; may change when a run goes on\n"
                                           : "; fixed for a run\n";
  return text;
}

std::string section_list(const Schema& defaults) {
  std::string text =
      "Sections of a configuration file (`stretto describe SECTION` lists its keys):\n";
  for (const auto& section : defaults.sections) {
    if (section.path.find('.') != std::string::npos) continue;
    text += "  [" + section.path + "]" +
            std::string(12 - std::min<size_t>(11, section.path.size()), ' ') + section.help + "\n";
  }
  return text +
         "\nBeside them `include = \"base.toml\"` at the top of a file reads another one first.\n";
}

// Keys that have `name` among their choices: `adamw` is a value of `optim.name`.
std::string component(const Schema& defaults, const std::string& name) {
  std::string text;
  for (const auto& key : defaults.keys) {
    const auto& choices = key.range.choices;
    if (std::find(choices.begin(), choices.end(), name) == choices.end()) continue;
    if (!text.empty()) text += "\n";
    text += "`" + name + "` is a value of " + key.path + "\n\n" + key_block(key, key.path);
    if (leaf(key.path) != "name" && leaf(key.path) != "type") continue;
    // A component's own keys stand in its section.
    text += "\n" + describe(defaults, parent(key.path));
  }
  return text;
}

[[noreturn]] void unknown(const Schema& defaults, const std::string& name) {
  std::string near = name.find('.') == std::string::npos ? suggest_section(name, defaults) : "";
  if (near.empty()) near = suggest_key(name, defaults).path;
  if (near.empty()) {
    std::vector<std::string> choices;
    for (const auto& key : defaults.keys) {
      choices.insert(choices.end(), key.range.choices.begin(), key.range.choices.end());
    }
    near = closest(name, choices);
  }
  throw Error(
      ExitCode::kUsage, "there is no section, key or component `" + printable(name) + "`",
      near.empty() ? "`stretto describe` lists the sections" : "did you mean `" + near + "`?");
}

std::string markdown_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

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
    if (!key.range.choices.empty()) json["enum"] = key.range.choices;
    return json;
  }
  const bool strings = std::holds_alternative<std::vector<std::string>*>(key.value);
  const Json item = strings ? Json{{"type", "string"}} : number("number");
  return {{"anyOf", Json::array({item, {{"type", "array"}, {"items", item}}})}};
}

Json table_schema(const Schema& defaults, const std::string& path) {
  Json properties = Json::object();
  for (const auto& key : defaults.keys) {
    if (parent(key.path) != path) continue;
    Json json = type_schema(key);
    json["description"] = key.help + (key.meta.unit.empty() ? "" : " [" + key.meta.unit + "]");
    json["default"] = Json::parse(value_text(key.value));
    properties[leaf(key.path)] = json;
  }
  for (const auto& section : defaults.sections) {
    if (parent(section.path) != path) continue;
    Json json = table_schema(defaults, section.path);
    json["description"] = section.help;
    properties[leaf(section.path)] = json;
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

}  // namespace

std::string describe(const Schema& defaults, const std::string& name) {
  if (name.empty()) return section_list(defaults);
  if (const Key* key = defaults.find(name)) return key_block(*key, key->path);
  const Section* section = defaults.find_section(name);
  if (section == nullptr) {
    const std::string text = component(defaults, name);
    if (text.empty()) unknown(defaults, name);
    return text;
  }
  std::string text = "[" + section->path + "]  " + section->help + "\n\n";
  for (const auto& key : defaults.keys) {
    if (key.path.starts_with(name + ".")) text += key_block(key, key.path.substr(name.size() + 1));
  }
  return text;
}

std::string reference_markdown(const Schema& defaults) {
  std::string text =
      "# Configuration reference\n\n"
      "Generated by `stretto describe --markdown`; a test fails when it is stale. One TOML file is "
      "one\n"
      "experiment. `include = \"base.toml\"` (or a list) at the top reads other files first; later "
      "values win.\n"
      "Relative paths are relative to the file that states them. Keys marked *free* may change "
      "when a run\n"
      "goes on; another value of any other key is another experiment.\n";
  for (const auto& section : defaults.sections) {
    std::string rows;
    for (const auto& key : defaults.keys) {
      if (parent(key.path) != section.path) continue;
      rows += "| `" + leaf(key.path) + "` | " + type_name(key.value) + " | `" +
              markdown_cell(value_text(key.value)) + "` | " + markdown_cell(range_text(key)) +
              " | " + key.meta.unit + " | " + markdown_cell(key.help) +
              (key.meta.change == Change::kFree ? " *(free)*" : "") + " |\n";
    }
    text += "\n## `[" + section.path + "]`\n\n" + section.help + "\n";
    if (!rows.empty()) {
      text +=
          "\n| key | type | default | range | unit | meaning |\n|---|---|---|---|---|---|\n" + rows;
    }
  }
  return text;
}

std::string json_schema(const Schema& defaults) {
  Json schema = table_schema(defaults, "");
  schema["properties"]["include"] = {
      {"description", "files that are read first, relative to this one"},
      {"anyOf",
       Json::array({{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}})}};
  Json out{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "Stretto experiment"}};
  out.update(schema);
  return out.dump(2) + "\n";
}

}  // namespace stretto::config
