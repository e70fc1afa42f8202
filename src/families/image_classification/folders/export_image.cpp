#include "families/image_classification/folders/export_image.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "families/image_classification/folders/image_class.h"
#include "families/image_classification/folders/image_names.h"
#include "families/image_classification/folders/image_processor.h"
#include "families/image_classification/folders/timm_config.h"
#include "families/image_classification/folders/vit_weights.h"
#include "families/image_classification/image_formats.h"
#include "interchange/folder_tensors.h"
#include "interchange/new_folder.h"
#include "interchange/tensors.h"

namespace stretto::interchange {
namespace {

using models::ResNetOptions;
using models::ResNetShape;
using models::ResNetVersion;
using models::VitOptions;

/// A file of a folder beside its weights.
struct TextFile {
  std::string name, bytes;
};

/// How a model is written.
struct WrittenForm {
  std::string name;  ///< of the class or function
  ImageSpelling spelling = ImageSpelling::kTransformers;
  std::vector<TextFile> files = {};
};

[[noreturn]] void refuse_format(const std::string& package, const std::string& reason) {
  throw Error(ExitCode::kUsage, package + " has no model that is equal to this one: " + reason,
              "the checkpoint itself is safetensors (RUN/checkpoints), which other programs read");
}

WrittenForm as_transformers(const ImageDescription& description, const std::string& model_type) {
  const ImageClass& its = choose_image_class(description, model_type);
  return {.name = std::string(its.name),
          .files = {{"config.json", write_image_config(its, description)},
                    {"preprocessor_config.json",
                     write_image_processor(description.pictures, std::string(its.model_type))}}};
}

WrittenForm as_timm(const ImageDescription& description) {
  const std::string reason = timm_incompatibility(description.model);
  if (!reason.empty()) refuse_format("timm", reason);
  return {.name = timm_architecture(description.model),
          .spelling = ImageSpelling::kTimm,
          .files = {{"config.json", write_timm_config(description)}}};
}

/// A ResNet that torchvision has no class of, as those for CIFAR are written.
std::string small_difference(const ResNetOptions& options) {
  const ResNetShape shape = models::shape_of(options);
  if (shape.version == ResNetVersion::kV2) return "model.version: norms stand behind convolutions";
  if (shape.bottleneck && shape.version == ResNetVersion::kV1) {
    return "model.version = \"v1\": bottlenecks stride in their 3 x 3 convolution";
  }
  if (options.norm_epsilon != 1e-5) return "model.norm_epsilon: it is 1e-5 there";
  return "";
}

WrittenForm as_torchvision(const ImageDescription& description) {
  const auto& model = description.model;
  WrittenForm form{.spelling = ImageSpelling::kTorchvision};
  std::string reason = timm_incompatibility(model);  // what it has, torchvision has too
  if (model.is<VitOptions>()) {
    const auto& options = model.as<VitOptions>();
    if (options.pooling != "class_token") reason = "model.pooling: it reads the class token";
    form.name = vit_preset_of(models::sizes_of(options));
    if (form.name.empty()) form.name = "VisionTransformer";
  } else if (model.is<ResNetOptions>()) {
    const auto& options = model.as<ResNetOptions>();
    form.name = "ResNet";
    if (!models::shape_of(options).has_large_stem) {
      form.spelling = ImageSpelling::kCifar;
      form.name = "ResNet for CIFAR";
      reason = small_difference(options);
    } else if (reason.empty()) {
      form.name = timm_architecture(model);
    }
  }
  if (!reason.empty()) refuse_format("torchvision", reason);
  std::string labels;
  for (const auto& label : description.labels) labels += label + "\n";
  form.files.push_back({"labels.txt", std::move(labels)});
  return form;
}

WrittenForm written_form(const ImageDescription& description, const std::string& format,
                         const std::string& model_type) {
  if (format == experiment::kTimmFormat) return as_timm(description);
  if (format == experiment::kTorchvisionFormat) return as_torchvision(description);
  return as_transformers(description, model_type);
}

/// Ours as others have them: the class token and the positions are a batch of one.
std::vector<store::TensorView> with_batch(std::vector<store::TensorView> tensors) {
  for (auto& tensor : tensors) {
    const size_t added = tensor.name == kClassToken ? 2 : tensor.name == kPositions ? 1 : 0;
    tensor.shape.insert(tensor.shape.begin(), added, 1);
  }
  return tensors;
}

/// How many batches each norm has seen, which nobody has counted: PyTorch saves it.
void add_batch_counts(std::vector<store::StreamedTensor>& tensors) {
  static constexpr std::string_view kZero("\0\0\0\0\0\0\0\0", 8);
  constexpr std::string_view kLast = "running_var";
  std::vector<store::StreamedTensor> counts;
  for (const auto& one : tensors) {
    const std::string& name = one.tensor.name;
    if (!name.ends_with(kLast)) continue;
    counts.push_back(
        {.tensor = {.name = name.substr(0, name.size() - kLast.size()) + "num_batches_tracked",
                    .dtype = store::DType::kI64,
                    .shape = {},
                    .bytes = kZero}});
  }
  tensors.insert(tensors.end(), counts.begin(), counts.end());
}

}  // namespace

std::string export_image(const ExportedImageModel& model, const std::string& format,
                         const std::string& model_type, const std::filesystem::path& folder) {
  const WrittenForm form = written_form(model.description, format, model_type);
  const auto names = image_names(model.description.model, form.spelling);
  require_all_written(model.tensors, names);
  auto theirs = separated(with_batch(model.tensors), names, 0, "the checkpoint");
  add_batch_counts(theirs);
  NewFolder target(folder);
  store::stream_safetensors(target.path() / "model.safetensors", theirs, {{"format", "pt"}});
  for (const auto& file : form.files) write_file_atomic(target.path() / file.name, file.bytes);
  target.publish();
  return form.name;
}

}  // namespace stretto::interchange
