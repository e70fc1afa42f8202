#include "interchange/config_reader.h"

#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::interchange {
namespace {

struct ActivationName {
  std::string_view theirs, ours;
};
// The first of each of ours is the one that is written.
constexpr std::array<ActivationName, 6> kActivations{{{"gelu", "gelu"},
                                                      {"gelu_pytorch_tanh", "gelu_tanh"},
                                                      {"gelu_new", "gelu_tanh"},
                                                      {"gelu_fast", "gelu_tanh"},
                                                      {"gelu_python", "gelu"},
                                                      {"relu", "relu"}}};

}  // namespace

ConfigReader::ConfigReader(nlohmann::json config, std::string where)
    : config_(std::move(config)), where_(std::move(where)) {
  if (!config_.is_object()) {
    throw Error(ExitCode::kBadData, where_ + ": not a JSON object",
                "give the folder of a model, with the " + file_name() + " that was saved with it");
  }
}

ConfigReader read_config_file(const std::filesystem::path& path, size_t max_bytes) {
  Allowance allowance(path.string());
  return read_config_file(path, max_bytes, allowance);
}

ConfigReader read_config_file(const std::filesystem::path& path, size_t max_bytes,
                              Allowance& allowance) {
  return {parse_json(read_file(path, max_bytes), path.string(), max_bytes, allowance),
          path.string()};
}

std::optional<ConfigReader> find_config_file(const std::filesystem::path& path, size_t max_bytes,
                                             Allowance& allowance) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_config_file(path, max_bytes, allowance);
}

std::string ConfigReader::file_name() const {
  return std::filesystem::path(where_).filename().string();
}

void ConfigReader::refuse(const std::string& key, const std::string& what,
                          const std::string& advice) const {
  throw Error(ExitCode::kBadData, where_ + ": `" + key + "` " + what,
              advice.empty() ? "only models that are equal here are imported" : advice);
}

const nlohmann::json* ConfigReader::find(const char* key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::has(const char* key) const {
  return find(key) != nullptr;
}

int64_t ConfigReader::integer(const char* key, int64_t min, int64_t max) const {
  const auto* found = find(key);
  if (found == nullptr) refuse(key, "is missing", "the " + file_name() + " is not whole");
  const bool fits = found->is_number_unsigned()
                        ? found->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                        : found->is_number_integer();
  if (!fits || found->get<int64_t>() < min || found->get<int64_t>() > max) {
    refuse(key, "is no whole number from " + std::to_string(min) + " to " + std::to_string(max),
           "the " + file_name() + " is damaged, or of another kind of model");
  }
  return found->get<int64_t>();
}

int64_t ConfigReader::integer(const char* key, int64_t fallback, int64_t min, int64_t max) const {
  return has(key) ? integer(key, min, max) : fallback;
}

double ConfigReader::number(const char* key, double fallback) const {
  const auto* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_number()) refuse(key, "is no number", "the " + file_name() + " is damaged");
  return found->get<double>();
}

bool ConfigReader::flag(const char* key, bool fallback) const {
  const auto* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean())
    refuse(key, "is neither true nor false", "the " + file_name() + " is damaged");
  return found->get<bool>();
}

std::string ConfigReader::text(const char* key, const std::string& fallback) const {
  const auto* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_string()) refuse(key, "is no string", "the " + file_name() + " is damaged");
  return found->get<std::string>();
}

ConfigReader ConfigReader::object(const char* key) const {
  const auto* found = find(key);
  if (found == nullptr || !found->is_object()) {
    refuse(key, "is no JSON object", "the " + file_name() + " is damaged");
  }
  return {*found, where_ + ": `" + key + "`"};
}

ConfigReader ConfigReader::with(const char* key, const std::string& text) const {
  nlohmann::json changed = config_;
  changed[key] = text;
  return {std::move(changed), where_};
}

std::string model_class_of(const ConfigReader& config) {
  if (!config.has("architectures")) return "";
  const auto& list = config.json()["architectures"];
  if (!list.is_array() || list.empty() || !list[0].is_string()) {
    config.refuse("architectures", "is no list of names", "the config.json is damaged");
  }
  return list[0].get<std::string>();
}

void require_whole_heads(const ConfigReader& config, const std::string& heads_key, int64_t heads,
                         const std::string& width_key, int64_t width) {
  if (width % heads == 0) return;
  config.refuse(
      heads_key,
      "is " + std::to_string(heads) + ", which does not divide " + width_key + " " +
          std::to_string(width),
      "correct `" + heads_key + "` or `" + width_key + "`: heads have equal parts of the width");
}

std::string read_activation(const ConfigReader& config, const char* key) {
  const std::string name = config.text(key, "gelu");
  for (const auto& known : kActivations) {
    if (known.theirs == name) return std::string(known.ours);
  }
  config.refuse(key, "is `" + printable(name) + "`; gelu, gelu_new and relu are known");
}

std::string activation_name(const std::string& activation) {
  for (const auto& known : kActivations) {
    if (known.ours == activation) return std::string(known.theirs);
  }
  return "";
}

}  // namespace stretto::interchange
