#include "families/text/engine/embedder.h"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "families/text/engine/batch_tokens.h"
#include "models/packed.h"

namespace stretto::tasks {
namespace {

constexpr double kLeastLength = 1e-12;  // of torch.nn.functional.normalize

int64_t length_of_text(const text::EncodedText& text) {
  return std::ssize(text.ids);
}

at::Tensor with_length_one(const at::Tensor& vectors) {
  return vectors / vectors.norm(2, /*dim=*/1, /*keepdim=*/true).clamp_min(kLeastLength);
}

}  // namespace

Embedder::Embedder(std::shared_ptr<models::TextModel> model, EmbedderOptions options)
    : model_(std::move(model)), options_(std::move(options)), passes_(model_->device()) {
  model_->eval();
  options_.batch_tokens = batch_tokens(options_.batch_tokens, model_->device());
}

int64_t Embedder::width() const {
  return model_->encoder().width();
}

// Numbers of the texts of each batch, longest first: the memory that is needed shows at once, and
// threads end together.
std::vector<Embedder::Numbers> Embedder::cut_into_batches(
    std::span<const text::EncodedText> texts) const {
  Numbers order;
  int64_t all = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (length_of_text(texts[i]) > 0) order.push_back(i);
    all += length_of_text(texts[i]);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return length_of_text(texts[a]) > length_of_text(texts[b]);
  });
  const int64_t threads = model_->device().is_cpu() ? at::get_num_threads() : 1;
  const int64_t bound = std::min(options_.batch_tokens, (all + threads - 1) / threads);
  std::vector<Numbers> batches;
  int64_t tokens = bound;
  for (const size_t number : order) {
    tokens += length_of_text(texts[number]);
    if (tokens > bound) {
      batches.emplace_back();
      tokens = length_of_text(texts[number]);
    }
    batches.back().push_back(number);
  }
  return batches;
}

at::Tensor Embedder::vectors_of(std::span<const text::EncodedText> texts,
                                const Numbers& batch) const {
  data::PackedTokens ids, segments;
  for (const size_t number : batch) {
    ids.append(texts[number].ids);
    segments.append(texts[number].segments);
  }
  const bool has_segments = model_->options().num_segments > 0;
  const auto input = models::pack_text(ids, has_segments ? &segments : nullptr,
                                       /*sample_ids=*/nullptr, model_->device());
  const auto rows = model_->encode(input, {});
  auto vectors = model_->sentence_vectors(rows, input.offsets, options_.pooling).to(at::kFloat);
  return (options_.normalize ? with_length_one(vectors) : vectors).cpu();
}

at::Tensor Embedder::embed(std::span<const text::EncodedText> texts) {
  const auto batches = cut_into_batches(texts);
  const auto result = at::zeros({std::ssize(texts), width()}, at::kFloat);
  passes_.run(std::ssize(batches), [&](int64_t i) {
    const Numbers& batch = batches[static_cast<size_t>(i)];
    const auto vectors = vectors_of(texts, batch).contiguous();
    const auto* from = vectors.data_ptr<float>();
    for (const size_t number : batch) {
      std::copy_n(from, width(), result.data_ptr<float>() + static_cast<int64_t>(number) * width());
      from += width();
    }
  });
  num_batches_ += std::ssize(batches);
  return result;
}

}  // namespace stretto::tasks
