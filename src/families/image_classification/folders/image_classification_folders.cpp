#include "families/image_classification/folders/image_classification_folders.h"

#include <string>
#include <utility>
#include <vector>

#include "families/image_classification/folders/image_class.h"
#include "families/image_classification/folders/import_image.h"
#include "families/image_classification/folders/timm_config.h"
#include "interchange/config_reader.h"
#include "interchange/described_experiment.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

/// Models of pictures, which are read whole.
class ImageClassificationFolders final : public ModelFolders {
 public:
  std::vector<std::string> model_types() const override {
    std::vector<std::string> types;
    for (const ImageClass* its : image_classes()) types.emplace_back(its->model_type);
    return types;
  }
  FolderWords words() const override {
    return {
        .model = "a model of pictures", .models = "models of pictures", .classes = "ResNet or ViT"};
  }
  bool trains(const ConfigReader& /*config*/) const override { return true; }
  bool claims(const ConfigReader& /*config*/, const ImportOptions& /*options*/) const override {
    return true;
  }
  bool claims_other(const ConfigReader& config) const override { return is_timm_config(config); }
  bool claims_weights(const std::vector<store::TensorView>& tensors) const override {
    return are_image_weights(tensors);
  }
  ImportedRun read(const fs::path& place, const ImportOptions& options) const override {
    return import_image(place, options);
  }
  experiment::OtherModel describe(const fs::path& place,
                                  const ImportOptions& options) const override {
    const auto model = describe_image_model(place, options);
    experiment::OtherModel found{
        .options = load_described(experiment_of(model.description), place).options,
        .tensors = {},
        .name = place.string()};
    for (auto& pair : image_names(model.description.model, model.spelling)) {
      found.tensors.push_back(std::move(pair.ours));
    }
    return found;
  }
};

}  // namespace

const ModelFolders& image_classification_folders() {
  static const ImageClassificationFolders folders;
  return folders;
}

}  // namespace stretto::interchange
