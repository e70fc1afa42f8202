#include "interchange/embed_recipe.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostModules = 16;

struct PoolingFlag {
  const char* key;
  const char* mode;
  bool is_default = false;
};
constexpr std::array<PoolingFlag, 6> kPoolingFlags{
    {{"pooling_mode_cls_token", "cls"},
     {"pooling_mode_mean_tokens", "mean", true},
     {"pooling_mode_max_tokens", "max"},
     {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
     {"pooling_mode_weightedmean_tokens", "weightedmean"},
     {"pooling_mode_lasttoken", "lasttoken"}}};

/// A step of a model, which modules.json lists in their order.
struct VectorModule {
  std::string type;  ///< without the package: "Pooling"
  std::string path;  ///< a folder beside modules.json
};

VectorModule read_module(const ConfigReader& module) {
  const std::string type = module.text("type", "");
  if (type.empty()) module.refuse("type", "is missing of a module");
  return {.type = type.substr(type.rfind('.') + 1), .path = module.text("path", "")};
}

std::vector<VectorModule> read_modules(const fs::path& path) {
  const auto json =
      parse_json(read_file(path, kMaxSmallTextBytes), path.string(), kMaxSmallTextBytes);
  if (!json.is_array() || json.size() > kMostModules) {
    throw Error(ExitCode::kBadData, path.string() + ": no list of at most " +
                                        std::to_string(kMostModules) + " modules");
  }
  std::vector<VectorModule> modules;
  for (const auto& entry : json) modules.push_back(read_module({entry, path.string()}));
  return modules;
}

/// "mean"; of several, which stand side by side in a vector, "cls+max".
std::string read_pooling(const fs::path& folder, const std::string& name) {
  if (name.empty() || name.starts_with('.') || name.find_first_of("/\\") != std::string::npos) {
    throw Error(ExitCode::kBadData, (folder / "modules.json").string() +
                                        ": `path` of Pooling is `" + printable(name, 60) +
                                        "`, which is no folder beside it");
  }
  const auto config = read_config_file(folder / name / "config.json", kMaxSmallTextBytes);
  if (config.has("pooling_mode")) return config.text("pooling_mode", "");
  std::vector<std::string> modes;
  for (const auto& flag : kPoolingFlags) {
    if (config.flag(flag.key, flag.is_default)) modes.emplace_back(flag.mode);
  }
  return join(modes, "+");
}

EmbedRecipe recipe_of(const fs::path& folder) {
  const fs::path path = folder / "modules.json";
  std::optional<std::string> pooling;
  bool normalizes = false, is_first = true;
  std::vector<std::string> others;
  for (const auto& module : read_modules(path)) {
    if (module.type == "Pooling" && !pooling) {
      pooling = read_pooling(folder, module.path);
    } else if (module.type == "Normalize" && pooling) {
      normalizes = true;
    } else if (module.type != "Transformer" || !is_first) {
      others.push_back("the module `" + printable(module.type, 60) + "`");
    }
    is_first = false;
  }
  if (pooling != "mean" && pooling != "cls") {
    others.insert(others.begin(),
                  pooling ? "the pooling `" + printable(*pooling, 60) + "`" : "no pooling");
  }
  if (others.empty()) {
    return {.options = "--pooling " + *pooling + (normalizes ? " --normalize" : ""), .problem = ""};
  }
  return {.options = "",
          .problem = path.string() + " asks for vectors that `stretto embed` does not make: " +
                     join(others, ", ") + "; it has the poolings mean and cls, and --normalize"};
}

}  // namespace

EmbedRecipe read_embed_recipe(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "modules.json", ignored)) return {};
  try {
    return recipe_of(folder);
  } catch (const Error& error) {
    return {.options = "",
            .problem = std::string(error.what()) +
                       "; so the options of `stretto embed` that this model was trained for are "
                       "not known"};
  }
}

}  // namespace stretto::interchange
