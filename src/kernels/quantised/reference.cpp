#include "kernels/quantised/reference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace stretto::kernels::reference {
namespace {

/// A scale and a zero for every weight [O, I].
struct OfEachWeight {
  at::Tensor scales, zeros;  // fp32, int32
};

at::Tensor for_each_input(const at::Tensor& of_groups, int64_t outputs, int64_t inputs,
                          int64_t group) {
  const int64_t size = group == 0 ? inputs : group;
  return of_groups.expand({outputs, of_groups.size(1)})
      .repeat_interleave(size, 1)
      .narrow(1, 0, inputs)
      .contiguous();
}

OfEachWeight for_each_weight(const QuantisedWeights& weights) {
  const int64_t outputs = weights.codes.size(0), inputs = weights.codes.size(1);
  const at::Tensor zeros =
      weights.zeros.defined() ? weights.zeros : at::zeros_like(weights.scales, at::kChar);
  return {for_each_input(weights.scales, outputs, inputs, weights.group),
          for_each_input(zeros.to(at::kInt), outputs, inputs, weights.group)};
}

}  // namespace

RoundedRows8 rounded_to_8_bits(const at::Tensor& x) {
  const at::Tensor rows = x.contiguous();
  RoundedRows8 rounded{at::zeros(rows.sizes(), at::kChar), at::zeros({rows.size(0)}, at::kFloat)};
  const int64_t inputs = rows.size(1);
  for (int64_t n = 0; n < rows.size(0); ++n) {
    const float* from = rows.const_data_ptr<float>() + n * inputs;
    float top = 0;
    bool is_finite = true;
    for (int64_t i = 0; i < inputs; ++i) {
      is_finite = is_finite && std::isfinite(from[i]);
      top = std::max(top, std::fabs(from[i]));
    }
    float& scale = rounded.scales.data_ptr<float>()[n];
    if (!is_finite) scale = std::numeric_limits<float>::quiet_NaN();
    if (!is_finite || top < 1e-30f) continue;
    scale = top / 127.0f;
    const float inverse = 127.0f / top;
    int8_t* to = rounded.codes.data_ptr<int8_t>() + n * inputs;
    for (int64_t i = 0; i < inputs; ++i)
      to[i] = static_cast<int8_t>(std::nearbyint(from[i] * inverse));
  }
  return rounded;
}

at::Tensor quantised_linear(const at::Tensor& x, const QuantisedWeights& weights,
                            const at::Tensor& bias) {
  const RoundedRows8 rows = rounded_to_8_bits(x);
  const at::Tensor codes = weights.codes.contiguous();
  const OfEachWeight all = for_each_weight(weights);
  const int64_t num_rows = x.size(0), inputs = codes.size(1), outputs = codes.size(0);
  const int64_t group = weights.group == 0 ? inputs : weights.group;
  at::Tensor out = at::empty({num_rows, outputs}, at::kFloat);
  for (int64_t n = 0; n < num_rows; ++n)
    for (int64_t o = 0; o < outputs; ++o) {
      const int8_t* q = rows.codes.const_data_ptr<int8_t>() + n * inputs;
      const int8_t* u = codes.const_data_ptr<int8_t>() + o * inputs;
      const float* scale = all.scales.const_data_ptr<float>() + o * inputs;
      const int32_t* zero = all.zeros.const_data_ptr<int32_t>() + o * inputs;
      double total = 0;
      for (int64_t begin = 0; begin < inputs; begin += group) {
        int64_t sum = 0;
        for (int64_t i = begin; i < std::min(begin + group, inputs); ++i)
          sum += (int64_t{u[i]} - zero[i]) * q[i];
        total += double{scale[begin]} * static_cast<double>(sum);
      }
      total *= double{rows.scales.const_data_ptr<float>()[n]};
      if (bias.defined()) total += bias[o].item<double>();
      out.data_ptr<float>()[n * outputs + o] = static_cast<float>(total);
    }
  return out;
}

at::Tensor dense(const QuantisedWeights& weights) {
  const OfEachWeight all = for_each_weight(weights);
  return (weights.codes.to(at::kInt) - all.zeros).to(at::kFloat) * all.scales;
}

}  // namespace stretto::kernels::reference
