#include "plan/model_size.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace stretto::plan {
namespace {

bool gated(const models::Seq2SeqOptions& model) {
  return model.activation == "swiglu";
}

int64_t attention(int64_t d) {
  return 4 * d * d + 4 * d;
}

int64_t feed_forward_weights(const models::Seq2SeqOptions& model, int64_t f) {
  return (gated(model) ? 3 : 2) * model.d_model * f;
}

int64_t feed_forward(const models::Seq2SeqOptions& model, int64_t f) {
  return feed_forward_weights(model, f) + (gated(model) ? 0 : f + model.d_model);
}

}  // namespace

ModelSize model_size(const models::Seq2SeqOptions& model, const TableRows& rows) {
  const int64_t d = model.d_model;
  const auto& encoder = model.encoder.as<models::StackOptions>();
  const auto& decoder = model.decoder.as<models::StackOptions>();
  int64_t count =
      encoder.num_layers * (attention(d) + feed_forward(model, encoder.ffn_dim) + 4 * d);
  count += decoder.num_layers * (2 * attention(d) + feed_forward(model, decoder.ffn_dim) + 6 * d);
  if (model.norm != "post") count += 4 * d;
  if (model.positions == "learned") count += 2 * model.max_positions * d;
  count += rows.src * d;
  if (model.tie_embeddings != "all") count += rows.tgt * d;
  if (model.tie_embeddings == "none") count += rows.tgt * d;
  return {.parameters = count};
}

TableGradients table_gradients(const models::Seq2SeqOptions& model, const TableRows& rows,
                               bool rows_apart) {
  const std::string& tie = model.tie_embeddings;
  const int64_t output = rows.tgt * model.d_model, encoder = rows.src * model.d_model;
  if (tie == "none") return {.first_parameters = output, .late_parameters = encoder};
  // A table that is looked up only stays one tensor.
  if (!rows_apart) return {.late_parameters = encoder};
  if (tie == "decoder") {
    return {.first_parameters = output, .late_parameters = encoder, .lookups = 1};
  }
  return {.first_parameters = output, .lookups = 2};  // as many source tokens
}

double different_rows(double lookups, int64_t rows) {
  return std::min({4 * std::pow(lookups, 0.7), lookups, double(rows)});
}

double training_flops_per_token(const models::Seq2SeqOptions& model, const TableRows& rows,
                                const Lengths& lengths) {
  const auto& encoder = model.encoder.as<models::StackOptions>();
  const auto& decoder = model.decoder.as<models::StackOptions>();
  const double d = double(model.d_model), src_per_tgt = lengths.src / lengths.tgt;
  const double encoder_layers = double(encoder.num_layers);
  const double decoder_layers = double(decoder.num_layers);
  const double per_source =
      encoder_layers * (4 * d * d + double(feed_forward_weights(model, encoder.ffn_dim))) +
      decoder_layers * 2 * d * d;  // keys and values of cross attention
  const double per_target =
      decoder_layers * (6 * d * d + double(feed_forward_weights(model, decoder.ffn_dim))) +
      double(rows.tgt) * d;
  const double seen =
      encoder_layers * src_per_tgt * lengths.src + decoder_layers * (lengths.tgt + lengths.src);
  return 6 * (src_per_tgt * per_source + per_target) + 12 * d * seen;
}

}  // namespace stretto::plan
