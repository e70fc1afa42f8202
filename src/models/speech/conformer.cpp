#include "models/speech/conformer.h"

#include <torch/nn/modules/container/modulelist.h>

#include <string>
#include <utility>

#include "models/parts.h"

namespace stretto::models {

ConformerEncoder::ConformerEncoder(const ConformerOptions& options, const SpeechPart& part)
    : options_(options), sizes_(sizes_of(options)) {
  subsampling_ = register_module("subsampling", ConformerSubsampling(part.init.child("subsampling"),
                                                                     options, part.num_features));
  const nn::Init place = part.init.child("layers");
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < sizes_.num_layers; ++i) {
    layers_.emplace_back(place.child(std::to_string(i)), options);
    list->push_back(layers_.back());
  }
  register_module("layers", list);
}

Encoded ConformerEncoder::forward(const nn::PackedRows& frames, const ForwardContext& context) {
  nn::PackedRows rows = subsampling_->forward(frames);
  ConformerDropout dropout{
      .options = options_, .source = context.dropout(rows.row_keys), .first_site = kSpeechSites};
  at::Tensor x = kernels::dropout(
      rows.values, dropout.source.at(options_.dropout, kSpeechSites + kEmbeddingSite));
  const at::Tensor vectors = options_.positions == "relative"
                                 ? distance_vectors(rows.offsets.max_length, sizes_.d_model, x)
                                 : at::Tensor();
  for (const ConformerLayer& layer : layers_) {
    if (x.size(0) == 0) break;  // a batch without frames
    x = layer->forward(x, rows, vectors, dropout);
    dropout.first_site += ConformerDropout::kPlaces;
  }
  rows.values = at::Tensor();
  return {.rows = std::move(rows), .keys = x, .values = {}, .state = {}};
}

double ConformerEncoder::operations(double length) const {
  const double rate = 1.0 / static_cast<double>(options_.subsampling_factor);
  double layers = 0;
  for (const ConformerLayer& layer : layers_) layers += layer->operations(length * rate);
  return subsampling_->operations() + rate * layers;
}

int64_t ConformerEncoder::output_length(int64_t frames) const {
  return models::output_length(options_, frames);
}

}  // namespace stretto::models
