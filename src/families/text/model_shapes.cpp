#include "families/text/model_shapes.h"

#include <algorithm>

namespace stretto::experiment {
namespace {

constexpr int64_t kVector = 8;  // floats that processors take together

// The values of a gate are sums over the input and the state.
ModelShape shape_of_recurrent(const models::CausalLstmModelOptions& model) {
  ModelShape shape;
  add_width(shape, "model.d_model", model.d_model, kVector);
  add_width(shape, "model.hidden_dim", model.hidden_dim, kVector);
  add_depth(shape, "model.num_layers", model.num_layers);
  shape.fan_in = static_cast<double>(model.d_model + model.hidden_dim);
  return shape;
}

}  // namespace

void add_width(ModelShape& shape, const std::string& key, int64_t value, int64_t multiple) {
  if (value <= 0) return;
  while (multiple > 1 && value % multiple != 0) multiple /= 2;
  shape.widths.push_back({key, value, multiple > 1 ? multiple : 1});
}

void add_depth(ModelShape& shape, const std::string& key, int64_t value, int64_t least) {
  if (value > 0) shape.depths.push_back({key, value, 1, std::clamp<int64_t>(least, 1, value)});
}

// Rotary positions turn pairs of columns of a head: a head's width stays even.
ModelShape shape_of_layers(int64_t num_layers, int64_t d_model, int64_t num_heads,
                           int64_t ffn_dim) {
  ModelShape shape;
  const int64_t heads = num_heads > 0 ? num_heads : 1;
  const int64_t multiple = d_model % (2 * heads) == 0 ? 2 * heads : heads;
  if (d_model > 0) shape.widths.push_back({"model.d_model", d_model, multiple});
  add_width(shape, "model.ffn_dim", ffn_dim, kVector);
  add_depth(shape, "model.num_layers", num_layers);
  shape.fan_in = static_cast<double>(d_model);
  return shape;
}

ModelShape shape_of_model(const models::BertOptions& model) {
  const models::BertSizes sizes = models::sizes_of(model);
  return shape_of_layers(sizes.num_layers, sizes.d_model, sizes.num_heads, sizes.ffn_dim);
}

ModelShape shape_of_model(const models::CausalModelOptions& model) {
  if (model.is<models::CausalLstmModelOptions>()) {
    return shape_of_recurrent(model.as<models::CausalLstmModelOptions>());
  }
  const models::CausalSizes sizes = models::sizes_of(model.as<models::CausalTransformerOptions>());
  return shape_of_layers(sizes.num_layers, sizes.d_model, sizes.num_heads, sizes.ffn_dim);
}

}  // namespace stretto::experiment
