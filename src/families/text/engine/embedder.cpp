#include "families/text/engine/embedder.h"

#include <torch/torch.h>

#include <utility>

#include "families/text/engine/batch_tokens.h"
#include "models/packed.h"

namespace stretto::tasks {
namespace {

constexpr double kLeastLength = 1e-12;  // of torch.nn.functional.normalize

at::Tensor with_length_one(const at::Tensor& vectors) {
  return vectors / vectors.norm(2, /*dim=*/1, /*keepdim=*/true).clamp_min(kLeastLength);
}

}  // namespace

Embedder::Embedder(std::shared_ptr<models::TextModel> model, EmbedderOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  model_->eval();
}

int64_t Embedder::width() const {
  return model_->width();
}

at::Tensor Embedder::embed(std::span<const text::EncodedText> texts) const {
  const at::NoGradGuard no_grad;
  data::PackedTokens ids, segments;
  for (const auto& text : texts) {
    ids.append(text.ids);
    segments.append(text.segments);
  }
  const auto input = models::pack_text(ids, model_->has_segments() ? &segments : nullptr,
                                       /*sample_ids=*/nullptr, model_->device());
  const auto rows = model_->encode(input, {});
  const auto vectors =
      model_->sentence_vectors(rows, input.offsets, options_.pooling).to(at::kFloat);
  return (options_.normalize ? with_length_one(vectors) : vectors).cpu().contiguous();
}

}  // namespace stretto::tasks
