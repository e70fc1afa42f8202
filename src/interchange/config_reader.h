#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/allowance.h"
#include "base/file.h"

namespace stretto::interchange {

/// The longest config.json: it may list every label.
inline constexpr size_t kMaxConfigBytes = kMaxSmallTextBytes * 16;

/// config.json, or another JSON file of the folder, with checks. Each member throws Error(kBadData)
/// that names file and key.
class ConfigReader {
 public:
  /// @param where  the file, for messages
  ConfigReader(nlohmann::json config, std::string where);

  bool has(const char* key) const;  ///< there, and not null
  /// A whole number in [min, max]. The second form is required.
  int64_t integer(const char* key, int64_t fallback, int64_t min, int64_t max) const;
  int64_t integer(const char* key, int64_t min, int64_t max) const;
  double number(const char* key, double fallback) const;
  bool flag(const char* key, bool fallback) const;
  std::string text(const char* key, const std::string& fallback) const;
  const nlohmann::json& json() const { return config_; }
  /// The JSON object of a key; messages about its keys name both. Required.
  ConfigReader object(const char* key) const;
  /// The same file with another text at a key.
  ConfigReader with(const char* key, const std::string& text) const;

  [[noreturn]] void refuse(const std::string& key, const std::string& what,
                           const std::string& advice = "") const;

 private:
  const nlohmann::json* find(const char* key) const;
  std::string file_name() const;  ///< without its folder, for advice

  nlohmann::json config_;
  std::string where_;
};

/// A file of the folder. Throws Error(kBadData) for one that is larger, or no JSON object.
ConfigReader read_config_file(const std::filesystem::path& path, size_t max_bytes);
/// The same as one file of a folder, whose reading has an allowance.
ConfigReader read_config_file(const std::filesystem::path& path, size_t max_bytes,
                              Allowance& allowance);
/// The same; nothing where there is no such file.
std::optional<ConfigReader> find_config_file(const std::filesystem::path& path, size_t max_bytes,
                                             Allowance& allowance);

/// The class that `architectures` of a config.json names, "BertModel"; empty when there is none.
/// Throws Error(kBadData) where the key is no list of names.
std::string model_class_of(const ConfigReader& config);

/// Refuses a number of heads that does not divide the width, by both keys of config.json.
void require_whole_heads(const ConfigReader& config, const std::string& heads_key, int64_t heads,
                         const std::string& width_key, int64_t width);

/// "gelu" of transformers' names of it; refuses others.
std::string read_activation(const ConfigReader& config, const char* key);
/// transformers' name of ours; gated units have none.
std::string activation_name(const std::string& activation);

}  // namespace stretto::interchange
