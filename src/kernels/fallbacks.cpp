#include "kernels/fallbacks.h"

#include <array>
#include <tuple>

#include "kernels/cuda/cuda.h"

namespace stretto::kernels {

std::vector<std::string> empty_places(const cuda::Table& table) {
  struct Place {
    const char* name;
    bool is_empty;
  };
  const auto place = [](const char* name, auto kernel) { return Place{name, kernel == nullptr}; };
  const std::array places{place("dropout", table.dropout),
                          place("dropout_add", table.dropout_add),
                          place("bias_activation_dropout", table.bias_activation_dropout),
                          place("swiglu_dropout", table.swiglu_dropout),
                          place("geglu_dropout", table.geglu_dropout),
                          place("layer_norm", table.layer_norm),
                          place("embed", table.embed),
                          place("rotary", table.rotary),
                          place("self_attention", table.self_attention),
                          place("cross_attention", table.cross_attention),
                          place("cross_attention_weights", table.cross_attention_weights),
                          place("decode_self_attention", table.decode_self_attention),
                          place("linear_cross_entropy", table.linear_cross_entropy),
                          place("linear_r_drop", table.linear_r_drop),
                          place("column_sums", table.column_sums),
                          place("sum_of_squares", table.sum_of_squares),
                          place("sum_of_squares_blocks", table.sum_of_squares_blocks),
                          place("time_convolution", table.time_convolution),
                          place("depthwise_convolution", table.depthwise_convolution),
                          place("light_convolution", table.light_convolution),
                          place("dynamic_convolution", table.dynamic_convolution),
                          place("time_convolution_step", table.time_convolution_step),
                          place("convolution_step", table.convolution_step),
                          place("glu", table.glu),
                          place("weight_norm", table.weight_norm),
                          place("multi_step_attention", table.multi_step_attention),
                          place("multi_step_attention_weights", table.multi_step_attention_weights),
                          place("recurrent", table.recurrent),
                          place("attentive", table.attentive),
                          place("recurrent_step", table.recurrent_step),
                          place("attentive_step", table.attentive_step)};
  static_assert(
      sizeof(cuda::Table) == std::tuple_size_v<decltype(places)> * sizeof(table.recurrent_step),
      "a place of the table has no name here");
  std::vector<std::string> names;
  for (const Place& one : places)
    if (one.is_empty) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> fallbacks(at::Device device) {
  if (!device.is_cuda() || !cuda::is_built()) return {};
  return empty_places(cuda::table());
}

}  // namespace stretto::kernels
