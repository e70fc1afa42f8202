#include "families/translation/folders/translation_folders.h"

#include <mutex>
#include <optional>
#include <utility>

#include "base/file.h"
#include "families/translation/folders/import_seq2seq.h"
#include "families/translation/folders/marian.h"
#include "interchange/config_reader.h"
#include "interchange/described_experiment.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

experiment::OtherModel read_described(const fs::path& folder, const ImportOptions& options) {
  const auto model = import_seq2seq(folder, options);
  experiment::OtherModel found{.options = load_described(model.experiment, folder).options,
                               .tensors = {},
                               .name = folder.string()};
  for (const auto& tensor : model.tensors) found.tensors.push_back(tensor.name);
  return found;
}

/// Models of Marian and of Pegasus, which are read whole.
class TranslationFolders final : public ModelFolders {
 public:
  std::vector<std::string> model_types() const override {
    std::vector<std::string> types;
    for (const auto& one : kMarianClasses) types.emplace_back(one.model_type);
    return types;
  }
  FolderWords words() const override {
    return {.model = "a translation model",
            .models = "translation models",
            .classes = "Marian or Pegasus model"};
  }
  bool trains(const ConfigReader& /*config*/) const override { return true; }
  bool claims(const ConfigReader& /*config*/, const ImportOptions& /*options*/) const override {
    return true;
  }
  ImportedRun read(const fs::path& folder, const ImportOptions& options) const override {
    return import_seq2seq(folder, options);
  }
  // The weights decide about its tables, and a search reads one configuration many times.
  experiment::OtherModel describe(const fs::path& folder,
                                  const ImportOptions& options) const override {
    static std::mutex mutex;
    static std::optional<std::pair<std::string, experiment::OtherModel>> last;
    const std::lock_guard lock(mutex);
    std::string text = folder.string() + "\n" + read_file(folder / "config.json", kMaxConfigBytes);
    if (!last || last->first != text)
      last.emplace(std::move(text), read_described(folder, options));
    return last->second;
  }
};

}  // namespace

const ModelFolders& translation_folders() {
  static const TranslationFolders folders;
  return folders;
}

}  // namespace stretto::interchange
