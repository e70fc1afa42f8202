#include "models/images/image_model.h"

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "models/images/airbench.h"
#include "models/images/alexnet.h"
#include "models/images/cifar_net.h"
#include "models/images/image_conflicts.h"
#include "models/images/resnet.h"
#include "models/images/vit.h"
#include "models/registry.h"
#include "nn/init_rules.h"

namespace stretto::models {
namespace {

std::shared_ptr<ImageModel> make(const ResNetOptions& options, const ImagePart& part) {
  return std::make_shared<ResNet>(options, part);
}
std::shared_ptr<ImageModel> make(const AlexNetOptions& options, const ImagePart& part) {
  return std::make_shared<AlexNet>(options, part);
}
std::shared_ptr<ImageModel> make(const CifarNetOptions& options, const ImagePart& part) {
  return std::make_shared<CifarNet>(options, part);
}
std::shared_ptr<ImageModel> make(const AirbenchOptions& options, const ImagePart& part) {
  return std::make_shared<Airbench>(options, part);
}
std::shared_ptr<ImageModel> make(const VitOptions& options, const ImagePart& part) {
  return std::make_shared<Vit>(options, part);
}

std::vector<nn::InitRule> rules_of_images(const std::vector<std::string>& given) {
  std::vector<nn::InitRule> rules(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto problem = nn::read_init_rule(given[i], rules[i]);
    if (problem) throw Error(ExitCode::kUsage, "model.init: " + problem->what, problem->hint);
  }
  return rules;
}

nn::Init root_of_images(const ImageModelSetup& setup) {
  const nn::Init root =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  return root.with_rules(rules_of_images(init_of(setup.model)))
      .with_lora(lora_of(setup.model))
      .with_adapter(adapter_of(setup.model));
}

}  // namespace

int64_t ImageModel::rows_per_sample(int64_t /*height*/, int64_t /*width*/) const {
  return 1;
}

void ImageModel::start_from(const at::Tensor& /*pixels*/) {}

at::Tensor ImageModel::checked(const ImageInput& input) const {
  const at::Tensor& x = input.pixels;
  TORCH_CHECK(x.dim() == 4, "[image_model] pixels must be [B, C, H, W], got ", x.sizes());
  if (x.size(1) != channels_) {
    throw Error(ExitCode::kBadData,
                "the model reads pictures of " + std::to_string(channels_) + " channels, got " +
                    std::to_string(x.size(1)),
                "convert the pictures, or train a model on such ones");
  }
  const std::string problem = image_size_problem(limits_, x.size(2), x.size(3));
  if (!problem.empty()) throw Error(ExitCode::kBadData, problem, "resize or crop the pictures");
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

std::shared_ptr<ImageModel> make_image_model(const ImageModelSetup& setup) {
  const auto conflicts = option_conflicts(setup.model);
  if (!conflicts.empty()) {
    const OptionConflict& first = conflicts.front();
    throw Error(ExitCode::kUsage, first.keys.front() + ": " + first.what, first.hint);
  }
  const ImagePart part{
      .init = root_of_images(setup), .channels = setup.channels, .num_labels = setup.num_labels};
  return setup.model.visit([&](const auto& options) { return make(options, part); });
}

at::Tensor image_row_keys(std::span<const int64_t> sample_ids, int64_t rows, c10::Device device) {
  const auto count = static_cast<int64_t>(sample_ids.size());
  at::Tensor keys = at::empty({count * rows}, at::kLong);
  auto* values = keys.mutable_data_ptr<int64_t>();
  for (const int64_t id : sample_ids) {
    for (int64_t row = 0; row < rows; ++row) {
      *values++ =
          static_cast<int64_t>(mix64(static_cast<uint64_t>(id), static_cast<uint64_t>(row)));
    }
  }
  return keys.to(device);
}

ModelCost cost_of(const ImageModel& model, int64_t height, int64_t width) {
  return {.parameters = num_parameters(model),
          .training_flops = 3 * model.operations(height, width)};
}

}  // namespace stretto::models
