#include "store/weight_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/allowance.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{64} << 20;
constexpr uint64_t kEntryBytes = 160;  // of a tensor in a map, and in a set of those that were seen
constexpr std::array<const char*, 2> kStems{"model.safetensors", "pytorch_model.bin"};

[[noreturn]] void bad_index(const fs::path& path, const std::string& what) {
  throw Error(ExitCode::kBadData, path.string() + ": " + what,
              "copy the folder again, with all of its files");
}

/// Tensor -> file, as an index has it under "weight_map".
std::map<std::string, std::string> read_weight_map(const fs::path& path) {
  Allowance allowance(path.string());
  const auto json =
      parse_json(read_file(path, kMaxIndexBytes), path.string(), kMaxIndexBytes, allowance);
  const auto found = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_object()) {
    bad_index(path, "no `weight_map` of tensors");
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : found->items()) {
    const bool is_name =
        file.is_string() && !file.get_ref<const std::string&>().empty() &&
        file.get_ref<const std::string&>().find_first_of("/\\") == std::string::npos &&
        !file.get_ref<const std::string&>().starts_with('.');
    if (!is_name) bad_index(path, "`" + printable(tensor) + "` names no file of this folder");
    allowance.take(kEntryBytes + tensor.size() + file.get_ref<const std::string&>().size(),
                   "its list of tensors");
    files[tensor] = file.get<std::string>();
  }
  if (files.empty()) bad_index(path, "lists no tensors");
  return files;
}

}  // namespace

bool is_weight_file(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kEndings{".safetensors", ".pth", ".pt", ".th", ".bin"};
  std::error_code error;
  const std::string ending = path.extension().string();
  return std::ranges::find(kEndings, ending) != kEndings.end() && fs::is_regular_file(path, error);
}

WeightFiles::WeightFiles(const fs::path& place) {
  if (fs::is_regular_file(place)) {
    read_one(place);
    return;
  }
  const fs::path& folder = place;
  for (const char* stem : kStems) {
    const fs::path whole = folder / stem, index = folder / (std::string(stem) + ".index.json");
    if (fs::exists(whole)) {
      read_one(whole);
      return;
    }
    if (fs::exists(index)) {
      read_index(index);
      return;
    }
  }
  throw Error(ExitCode::kUsage,
              folder.string() + ": no weights: neither model.safetensors nor pytorch_model.bin",
              "give the folder that `save_pretrained` wrote; weights of TensorFlow and Flax are "
              "not read");
}

void WeightFiles::read_one(const fs::path& path) {
  paths_.push_back(path);
  const bool is_torch = path.extension() != ".safetensors";
  const auto& tensors = is_torch ? torch_files_.emplace_back(path).tensors()
                                 : safetensors_.emplace_back(path).tensors();
  tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
}

void WeightFiles::read_index(const fs::path& path) {
  const auto files = read_weight_map(path);
  std::set<std::string> names, seen;
  for (const auto& [tensor, file] : files) names.insert(file);
  for (const auto& name : names) {
    const size_t before = tensors_.size();
    read_one(path.parent_path() / name);
    for (size_t i = before; i < tensors_.size(); ++i) {
      const auto& tensor = tensors_[i].name;
      if (!seen.insert(tensor).second) {
        bad_index(path, "two of its files have `" + printable(tensor) + "`");
      }
      const auto listed = files.find(tensor);
      if (listed == files.end() || listed->second != name) {
        bad_index(path, name + " has `" + printable(tensor) + "`, which is not listed there");
      }
    }
  }
  for (const auto& [tensor, file] : files) {
    if (!seen.contains(tensor)) bad_index(path, file + " has no `" + printable(tensor) + "`");
  }
}

std::string import_advice(const fs::path& folder) {
  constexpr size_t kMaxConfigBytes = kMaxSmallTextBytes * 16;  // it lists every label
  const fs::path path = folder / "config.json";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  try {
    const auto json = parse_json(read_file(path, kMaxConfigBytes), path.string(), kMaxConfigBytes);
    if (!json.is_object()) return "";
    if (!json.contains("model_type") && !json.contains("architectures")) return "";
  } catch (const Error&) {  // it is not asked for as what it may be
    return "";
  }
  const std::string place = printable(folder.string(), 4096);
  return "it is a model folder of transformers, which is imported first: stretto import " + place +
         " --run RUN";
}

}  // namespace stretto::store
