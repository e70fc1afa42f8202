#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <span>

#include "models/encoder.h"
#include "models/images/image_model_options.h"
#include "models/model_cost.h"
#include "nn/init.h"

/// Shape letters: B samples, C channels of a picture, H its height, W its width, L labels.
namespace stretto::models {

/// A batch of pictures of one size.
struct ImageInput {
  /// [B, C, H, W], normalised, fp32 or fp64, in any layout: channels-last spares a copy.
  at::Tensor pixels;
  /// int64 [B * R], from image_row_keys(), R = ImageModel::rows_per_sample(): keys of dropout
  /// masks. Undefined when not training, and for a model without dropout.
  at::Tensor row_keys = {};
  int64_t epoch = 0;  ///< of the batch, from 0 on; read in training alone
};

/// What a model of one kind is built from beside its options.
struct ImagePart {
  nn::Init init;  ///< at the root
  int64_t channels = 3;
  int64_t num_labels = 0;  ///< 0: of a ResNet, without a head
};

/// A network from pictures to logits. Single-device code; memory is channels-last throughout.
/// The last layer is `head`, a linear map, in every model.
class ImageModel : public torch::nn::Module {
 public:
  /// -> logits [B, L]. Batch norms go by train() and eval(), dropout by the context. Throws
  /// Error(kBadData) for pictures of a size or number of channels that the model cannot read.
  virtual at::Tensor forward(const ImageInput& input, const ForwardContext& context) = 0;

  /// Rows of dropout masks for a picture: 1, or of a ViT its patches and the class token.
  virtual int64_t rows_per_sample(int64_t height, int64_t width) const;
  /// Whether forward reads ImageInput::row_keys in training.
  virtual bool has_dropout() const { return false; }

  /// Multiplications and additions of forward for one picture (models/operations.h).
  virtual double operations(int64_t height, int64_t width) const = 0;

  /// Filters of the first layer, [O, C, kh, kw], for a report.
  virtual at::Tensor first_filters() const = 0;

  /// Makes those first weights that come from training pictures, of which num_first_images() says
  /// how many are wanted; called once before training begins, with the same pictures on every
  /// rank. Models without such weights do nothing. pixels [n, C, H, W] as of forward
  virtual void start_from(const at::Tensor& pixels);

  int64_t num_labels() const { return num_labels_; }  ///< L
  int64_t channels() const { return channels_; }      ///< C

 protected:
  ImageModel(const ImagePart& part, const ImageLimits& limits)
      : channels_(part.channels), num_labels_(part.num_labels), limits_(limits) {}
  /// pixels in channels-last memory. Throws as forward does.
  at::Tensor checked(const ImageInput& input) const;

 private:
  int64_t channels_, num_labels_;
  ImageLimits limits_;
};

/// What an ImageModel is built from.
struct ImageModelSetup {
  ImageModelOptions model;
  int64_t channels = 3;
  int64_t num_labels = 0;        ///< L
  uint64_t seed = 1;             ///< of the first weights
  bool draws_weights = true;     ///< false: matrices are unset, since weights are loaded at once
  at::Device device = at::kCPU;  ///< at::kMeta counts parameters without memory
};

/// The model that `model.name` chooses, with first weights that depend on seed and parameter name.
/// Throws Error(kUsage) for options that contradict each other (models/images/image_conflicts.h).
std::shared_ptr<ImageModel> make_image_model(const ImageModelSetup& setup);

/// Keys of dropout masks: mix64(sample id, row) of `rows` rows for each sample, int64 [B * rows].
at::Tensor image_row_keys(std::span<const int64_t> sample_ids, int64_t rows, c10::Device device);

/// Of one picture of this size. The model may have no memory (at::kMeta).
ModelCost cost_of(const ImageModel& model, int64_t height, int64_t width);

}  // namespace stretto::models
