#include "interchange/model_folders.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "experiment/family_spec.h"
#include "interchange/config_reader.h"
#include "store/weight_files.h"

namespace stretto::interchange {
namespace {

/// What all families know of folders, in their order.
std::vector<const ModelFolders*> all_folders() {
  std::vector<const ModelFolders*> found;
  for (const auto& family : experiment::families()) {
    if (family.folders != nullptr) found.push_back(&family.folders());
  }
  return found;
}

/// Whether a class of `transformers` is one of a type: "BertModel" of "bert", and
/// "BertGenerationDecoder" of another.
bool is_class_of(std::string_view model_class, std::string_view type) {
  const auto is_same = [](char of_type, char of_class) {
    return of_type == std::tolower(static_cast<unsigned char>(of_class));
  };
  if (model_class.size() < type.size()) return false;
  if (!std::equal(type.begin(), type.end(), model_class.begin(), is_same)) return false;
  const std::string_view rest = model_class.substr(type.size());
  constexpr std::array<std::string_view, 4> kEnds{"For", "LMHead", "MTModel", "Model"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return rest.starts_with(end); });
}

}  // namespace

ConfigReader with_type_of_class(ConfigReader config) {
  if (config.has("model_type")) return config;
  const std::string model_class = model_class_of(config);
  for (const auto& type : known_model_types()) {
    if (is_class_of(model_class, type)) return config.with("model_type", type);
  }
  return config;
}

ConfigReader read_folder_config(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ExitCode::kUsage, "no folder at " + folder.string(),
                "give the folder that `save_pretrained` wrote");
  }
  return with_type_of_class(read_config_file(folder / "config.json", kMaxConfigBytes));
}

void refuse_model_type(const ConfigReader& config, const std::string& type,
                       const std::vector<std::string>& known) {
  const std::string types = join(known, ", ");
  if (type.empty()) {
    config.refuse("model_type", "is missing",
                  "add the type of the model to config.json, such as `\"model_type\": \"" +
                      known.front() + "\"`; known: " + types);
  }
  config.refuse("model_type", "is `" + printable(type) + "`", "known: " + types);
}

const ModelFolders* find_folders(const experiment::Experiment& experiment) {
  const auto* family = experiment::find_family(experiment);
  return family == nullptr || family->folders == nullptr ? nullptr : &family->folders();
}

bool has_type(const ModelFolders* folders, std::string_view model_type) {
  return folders != nullptr && std::ranges::count(folders->model_types(), model_type) > 0;
}

bool reads_folders_of(const ModelFolders* folders, const ConfigReader& config) {
  if (folders == nullptr) return false;
  const std::string type = config.text("model_type", "");
  return type.empty() ? folders->claims_other(config) : has_type(folders, type);
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> known;
  for (const auto* folders : all_folders()) {
    for (auto& type : folders->model_types()) {
      if (std::ranges::count(known, type) == 0) known.push_back(std::move(type));
    }
  }
  return known;
}

const ModelFolders& reader_of(const ConfigReader& config, const ImportOptions& options) {
  const std::string type = config.text("model_type", "");
  for (const auto* folders : all_folders()) {
    if (!reads_folders_of(folders, config)) continue;
    if (type.empty() || folders->claims(config, options)) return *folders;
  }
  refuse_model_type(config, type, known_model_types());
}

const ModelFolders& reader_of_file(const std::filesystem::path& file) {
  const store::WeightFiles weights(file);
  for (const auto* folders : all_folders()) {
    if (folders->claims_weights(weights.tensors())) return *folders;
  }
  const auto& tensors = weights.tensors();
  throw Error(ExitCode::kBadData,
              file.string() + ": a file of weights alone, whose model its names do not tell" +
                  (tensors.empty() ? ": it has no tensors"
                                   : "; the first is `" + printable(tensors.front().name) + "`"),
              "ResNets and vision transformers of torchvision and timm are known by their names; "
              "give a model of transformers as a folder with its config.json");
}

void require_kind_of_class(const experiment::Experiment& experiment, const std::string& wanted) {
  if (has_type(find_folders(experiment), wanted)) return;
  for (const auto* folders : all_folders()) {
    if (!has_type(folders, wanted)) continue;
    throw Error(ExitCode::kUsage,
                "--model-type " + wanted + " is a class of " + folders->words().models +
                    ", and the task of the run is " + experiment.task.name(),
                "leave the option out");
  }
}

}  // namespace stretto::interchange
