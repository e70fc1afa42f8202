#pragma once

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "kernels/convolution/reference.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "tests/kernels/gradcheck.h"

/// Every differentiable operator of kernels.h as a case: the public form, the reference, inputs of
/// odd sizes that leave remainders in every loop. Tests run the whole list.
namespace stretto::kernels::cases {

struct Case {
  std::string name;
  testing::Function run, reference;
  testing::Inputs inputs;
  testing::Precision precision = {};  // of fp32 beside the reference in fp64
};

/// The value of a case, then the gradients.
inline testing::Inputs value_and_gradients(const Case& one) {
  testing::Inputs inputs;
  for (const at::Tensor& x : one.inputs) inputs.push_back(x.clone().requires_grad_(true));
  const at::Tensor out = one.run(inputs);
  testing::Inputs all = torch::autograd::grad({out}, inputs, {testing::noise(out.sizes(), 3)});
  all.insert(all.begin(), out.detach());
  return all;
}

inline Dropout third(int64_t rows, at::Device device = at::kCPU) {
  return {.p = 0.3,
          .key = 0x123456789abcdefull,
          .row_keys = (at::arange(rows, at::kLong) * 7919 - 3).to(device)};
}

inline Offsets lengths(const std::vector<int>& bounds, at::Device device = at::kCPU) {
  return {.values = at::tensor(bounds, at::kInt).to(device), .max_length = 40};
}

/// Both forms of one call.
template <class Call>
Case make(const std::string& name, const Call& call, testing::Inputs inputs) {
  return {name,
          [call](const testing::Inputs& in) { return call(in, std::false_type()); },
          [call](const testing::Inputs& in) { return call(in, std::true_type()); },
          std::move(inputs),
          {}};
}

inline std::vector<Case> rows() {
  using testing::noise;
  std::vector<Case> all;
  all.push_back(make("dropout",
                     [](const auto& x, auto plain) {
                       return plain ? reference::dropout(x[0], third(5)) : dropout(x[0], third(5));
                     },
                     {noise({5, 19})}));
  all.push_back(make("dropout_add",
                     [](const auto& x, auto plain) {
                       return plain ? reference::dropout_add(x[0], x[1], third(5))
                                    : dropout_add(x[0], x[1], third(5));
                     },
                     {noise({5, 19}), noise({5, 19}, 8)}));
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kReluSquared})
    for (const Dropout& drop : {Dropout{}, third(5)})
      all.push_back(make(activation == Activation::kRelu       ? "bias_relu_dropout"
                         : activation == Activation::kGelu     ? "bias_gelu_dropout"
                         : activation == Activation::kGeluTanh ? "bias_gelu_tanh_dropout"
                         : activation == Activation::kSilu     ? "bias_silu_dropout"
                                                               : "bias_relu_squared_dropout",
                         [=](const auto& x, auto plain) {
                           return plain ? reference::bias_activation_dropout(x[0], x[1], activation,
                                                                             drop)
                                        : bias_activation_dropout(x[0], x[1], activation, drop);
                         },
                         {noise({5, 33}) * 2, noise({33}, 8)}));
  all.push_back(make("swiglu_dropout",
                     [](const auto& x, auto plain) {
                       return plain ? reference::swiglu_dropout(x[0], third(4))
                                    : swiglu_dropout(x[0], third(4));
                     },
                     {noise({4, 38}) * 3}));
  all.push_back(make("geglu_dropout",
                     [](const auto& x, auto plain) {
                       return plain ? reference::geglu_dropout(x[0], third(4))
                                    : geglu_dropout(x[0], third(4));
                     },
                     {noise({4, 38}) * 3}));
  const at::Tensor positions = at::tensor({0, 1, 2, 0, 9}, at::kLong);
  all.push_back(make("rotary",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::rotary(x[0], positions, 2, 12, 2)
                                    : rotary(x[0], positions, 2, 12, 2);
                     },
                     {noise({5, 36})}));
  const at::Tensor shared = at::tensor({0, 1, 2, 0, 1}, at::kLong);
  all.push_back(make("rotary of more rows than positions",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::rotary(x[0], shared, 2, 12, 2)
                                    : rotary(x[0], shared, 2, 12, 2);
                     },
                     {noise({5, 36})}));
  const RotaryAngles angles{.frequencies = at::tensor({0.7, 0.3, -0.01}, at::kDouble),
                            .factor = 1.25};
  all.push_back(make("rotary by other angles",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::rotary(x[0], positions, 2, 12, 2, angles)
                                    : rotary(x[0], positions, 2, 12, 2, angles);
                     },
                     {noise({5, 36})}));
  const at::Tensor ids = at::tensor({3, 1, 3, 0, 3}, at::kLong);
  all.push_back(make("embed",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::embed(x[0], ids, 2.5, x[1])
                                    : embed(x[0], ids, 2.5, x[1]);
                     },
                     {noise({6, 21}), noise({5, 21}, 8)}));
  return all;
}

inline std::vector<Case> attention(const std::vector<int>& queries, const std::vector<int>& keys,
                                   int64_t width) {
  using testing::noise;
  std::vector<Case> all;
  const int64_t rows = queries.back();
  for (const bool causal : {false, true})
    for (const Dropout& drop : {Dropout{}, third(rows)}) {
      const SelfAttention options{
          .offsets = lengths(queries), .num_heads = 2, .causal = causal, .dropout = drop};
      all.push_back(make(causal ? "causal self_attention" : "self_attention",
                         [=](const auto& x, auto plain) {
                           return plain ? reference::self_attention(x[0], options)
                                        : self_attention(x[0], options);
                         },
                         {noise({rows, 3 * width})}));
    }
  const CrossAttention options{.query_offsets = lengths(queries),
                               .key_offsets = lengths(keys),
                               .num_heads = 2,
                               .dropout = third(rows)};
  all.push_back(make("cross_attention",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::cross_attention(x[0], x[1], options)
                                    : cross_attention(x[0], x[1], options);
                     },
                     {noise({rows, width}), noise({keys.back(), 2 * width}, 8)}));
  return all;
}

/// Self-attention of rows, the first input, whose scores have the second as their bias.
inline auto biased_self_attention(const SelfAttention& options, int64_t zero) {
  return [=](const auto& x, auto plain) {
    SelfAttention biased = options;
    biased.bias = {.table = x[1], .zero = zero};
    return plain ? reference::self_attention(x[0], biased) : self_attention(x[0], biased);
  };
}

/// Scores with a bias of distances that each query has for itself, an input: sequences are longer
/// than its columns.
inline std::vector<Case> attention_with_bias_of_queries(const std::vector<int>& queries,
                                                        int64_t head_width) {
  using testing::noise;
  std::vector<Case> all;
  const int64_t rows = queries.back(), heads = 4, zero = 3;
  for (const int64_t kv_heads : {1, 2, 4})
    for (const bool causal : {false, true}) {
      const SelfAttention options{.offsets = lengths(queries),
                                  .num_heads = heads,
                                  .causal = causal,
                                  .dropout = kv_heads == 2 ? third(rows) : Dropout{},
                                  .num_kv_heads = kv_heads};
      all.push_back(make(std::string(causal ? "causal " : "") +
                             "attention with a bias of queries, " + std::to_string(kv_heads),
                         biased_self_attention(options, zero),
                         {noise({rows, (heads + 2 * kv_heads) * head_width}),
                          noise({rows, heads, zero + (causal ? 1 : 3)}, 8)}));
    }
  return all;
}

/// Heads of keys that four heads of queries share, and scores with a bias of distances, whose table
/// is an input.
inline std::vector<Case> shared_attention(const std::vector<int>& queries,
                                          const std::vector<int>& keys, int64_t head_width) {
  using testing::noise;
  std::vector<Case> all;
  const int64_t rows = queries.back(), heads = 4;
  int64_t longest = 0;
  for (size_t i = 0; i + 1 < queries.size(); ++i)
    longest = std::max<int64_t>(longest, queries[i + 1] - queries[i]);
  for (const int64_t kv_heads : {1, 2, 4})
    for (const bool causal : {false, true})
      for (const Dropout& drop : {Dropout{}, third(rows)}) {
        const SelfAttention options{.offsets = lengths(queries),
                                    .num_heads = heads,
                                    .causal = causal,
                                    .dropout = drop,
                                    .num_kv_heads = kv_heads};
        const int64_t zero = longest + 1;  // two columns more than are needed
        all.push_back(make(std::string(causal ? "causal " : "") + "biased attention of " +
                               std::to_string(kv_heads),
                           biased_self_attention(options, zero),
                           {noise({rows, (heads + 2 * kv_heads) * head_width}),
                            noise({heads, zero + (causal ? 1 : longest)}, 8)}));
      }
  for (const int64_t kv_heads : {1, 2}) {
    const CrossAttention options{.query_offsets = lengths(queries),
                                 .key_offsets = lengths(keys),
                                 .num_heads = heads,
                                 .dropout = third(rows),
                                 .num_kv_heads = kv_heads};
    all.push_back(make(
        "cross_attention to shared keys",
        [=](const auto& x, auto plain) {
          return plain ? reference::cross_attention(x[0], x[1], options)
                       : cross_attention(x[0], x[1], options);
        },
        {noise({rows, heads * head_width}), noise({keys.back(), 2 * kv_heads * head_width}, 8)}));
  }
  return all;
}

/// Causal self-attention within limits, and with a window beside a bias of distances. Windows end
/// inside a tile of queries, and go over several.
inline std::vector<Case> limited_attention(const std::vector<int>& queries, int64_t head_width) {
  using testing::noise;
  std::vector<Case> all;
  const int64_t rows = queries.back(), heads = 4, zero = rows;
  for (const AttentionLimits& limits :
       {AttentionLimits{.window = 1}, AttentionLimits{.window = 3}, AttentionLimits{.window = 35},
        AttentionLimits{.softcap = 0.8}, AttentionLimits{.window = 4, .softcap = 20}})
    for (const int64_t kv_heads : {2, 4}) {
      const SelfAttention options{.offsets = lengths(queries),
                                  .num_heads = heads,
                                  .causal = true,
                                  .dropout = kv_heads == 2 ? third(rows) : Dropout{},
                                  .num_kv_heads = kv_heads,
                                  .limits = limits};
      const at::Tensor qkv = noise({rows, (heads + 2 * kv_heads) * head_width}) * 2;
      const std::string name =
          "attention within " + std::to_string(limits.window) + ", " + std::to_string(kv_heads);
      all.push_back(make(name,
                         [=](const auto& x, auto plain) {
                           return plain ? reference::self_attention(x[0], options)
                                        : self_attention(x[0], options);
                         },
                         {qkv}));
      // The gradient of a bias over one key alone is zero, but for what is rounded.
      if (limits.softcap > 0 || limits.window == 1) continue;
      all.push_back(make("biased " + name, biased_self_attention(options, zero),
                         {qkv, noise({heads, zero + 1}, 8)}));
    }
  return all;
}

/// Products of N tokens, D to O columns, their norms, and the loss over O classes and three
/// rounding rows.
inline std::vector<Case> products(int64_t n, int64_t d, int64_t o) {
  using testing::noise;
  std::vector<Case> all;
  const double shrink = 1.0 / std::sqrt(static_cast<double>(d));
  all.push_back(make("linear",
                     [](const auto& x, auto plain) {
                       return plain ? at::linear(x[0], x[1], x[2])
                                    : kernels::linear(x[0], x[1], x[2]);
                     },
                     {noise({n, d}), noise({o, d}, 8) * shrink, noise({o}, 9)}));
  all.push_back(make("linear without bias",
                     [](const auto& x, auto plain) {
                       return plain ? at::linear(x[0], x[1]) : kernels::linear(x[0], x[1]);
                     },
                     {noise({n, d}), noise({o, d}, 8) * shrink}));
  all.push_back(make("layer_norm",
                     [=](const auto& x, auto plain) {
                       return plain ? at::layer_norm(x[0], {d}, x[1], x[2])
                                    : kernels::layer_norm(x[0], x[1], x[2]);
                     },
                     {noise({n, d}) * 2 + 0.5, noise({d}, 8) + 1, noise({d}, 9)}));
  all.push_back(make("rms_norm",
                     [](const auto& x, auto plain) {
                       return plain ? reference::rms_norm(x[0], x[1])
                                    : kernels::rms_norm(x[0], x[1]);
                     },
                     {noise({n, d}) * 2 + 0.5, noise({d}, 8) + 1}));
  const at::Tensor targets = at::arange(n, at::kLong) * 5 % o;
  for (const double smoothing : {0.0, 0.1})
    all.push_back(make(
        "linear_cross_entropy",
        [=](const auto& x, auto plain) {
          return plain ? reference::linear_cross_entropy(x[0], x[1], targets, smoothing, o).loss_sum
                       : linear_cross_entropy(x[0], x[1], targets, smoothing, o).loss_sum;
        },
        {noise({n, d}), noise({o + 3, d}, 8) * shrink}));
  all.push_back(make(
      "linear_cross_entropy with a bias",
      [=](const auto& x, auto plain) {
        return plain ? reference::linear_cross_entropy(x[0], x[1], targets, 0.1, o, x[2]).loss_sum
                     : linear_cross_entropy(x[0], x[1], targets, 0.1, o, x[2]).loss_sum;
      },
      {noise({n, d}), noise({o + 3, d}, 8) * shrink, noise({o + 3}, 9)}));
  for (const double softcap : {0.7, 30.0})
    all.push_back(make(
        "linear_cross_entropy of bent logits",
        [=](const auto& x, auto plain) {
          return plain ? reference::linear_cross_entropy(x[0], x[1], targets, 0.1, o, x[2], softcap)
                             .loss_sum
                       : linear_cross_entropy(x[0], x[1], targets, 0.1, o, x[2], softcap).loss_sum;
        },
        {noise({n, d}), noise({o + 3, d}, 8) * shrink, noise({o + 3}, 9)}));
  for (const double smoothing : {0.0, 0.1}) {
    const RDrop options{.smoothing = smoothing, .alpha = 5, .num_classes = o};
    all.push_back(
        make("linear_r_drop",
             [=](const auto& x, auto plain) {
               return plain ? reference::linear_r_drop(x[0], x[1], targets, options).loss_sum
                            : linear_r_drop(x[0], x[1], targets, options).loss_sum;
             },
             {noise({2 * n, d}), noise({o + 3, d}, 8) * shrink}));
    all.push_back(
        make("linear_r_drop with a bias",
             [=](const auto& x, auto plain) {
               return plain ? reference::linear_r_drop(x[0], x[1], targets, options, x[2]).loss_sum
                            : linear_r_drop(x[0], x[1], targets, options, x[2]).loss_sum;
             },
             {noise({2 * n, d}), noise({o + 3, d}, 8) * shrink, noise({o + 3}, 9)}));
  }
  return all;
}

/// Every operator of convolution.h that looks along time: C channels to O, H heads.
inline std::vector<Case> convolutions(const TimeWindow& window, int64_t c, int64_t o, int64_t h) {
  using testing::noise;
  std::vector<Case> all;
  const int64_t n = window.offsets.values[-1].item<int64_t>(), k = window.kernel;
  const int64_t m = output_offsets(window).values[-1].item<int64_t>();
  const double shrink = 1.0 / std::sqrt(static_cast<double>(c * k));
  all.push_back(make("time convolution",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::time_convolution(x[0], x[1], x[2], window)
                                    : time_convolution(x[0], x[1], x[2], window);
                     },
                     {noise({n, c}), noise({o, k * c}, 8) * shrink, noise({o}, 9)}));
  // Sums are rounded before they are multiplied (filtering.h, whose own test is stricter), and
  // gradients of the weight are as large as the root of the number of rows.
  all.back().precision.absolute_of_gradients = 3e-4;
  all.push_back(make("depthwise convolution",
                     [=](const auto& x, auto plain) {
                       return plain ? reference::depthwise_convolution(x[0], x[1], x[2], window)
                                    : depthwise_convolution(x[0], x[1], x[2], window);
                     },
                     {noise({n, c}), noise({c, k}, 8), noise({c}, 9)}));
  for (const Dropout& drop : {Dropout{}, third(m)}) {
    all.push_back(make("light convolution",
                       [=](const auto& x, auto plain) {
                         return plain ? reference::light_convolution(x[0], x[1], drop, window)
                                      : light_convolution(x[0], x[1], drop, window);
                       },
                       {noise({n, c}), noise({h, k}, 8)}));
    all.push_back(make("dynamic convolution",
                       [=](const auto& x, auto plain) {
                         return plain ? reference::dynamic_convolution(x[0], x[1], h, drop, window)
                                      : dynamic_convolution(x[0], x[1], h, drop, window);
                       },
                       {noise({n, c}), noise({m, h * k}, 8)}));
  }
  return all;
}

inline std::vector<Case> gates(int64_t n, int64_t c) {
  using testing::noise;
  std::vector<Case> all;
  for (const Dropout& drop : {Dropout{}, third(n)})
    all.push_back(make("glu",
                       [=](const auto& x, auto plain) {
                         return plain ? reference::glu(x[0], x[1], drop) : glu(x[0], x[1], drop);
                       },
                       {noise({n, 2 * c}) * 2, noise({2 * c}, 8)}));
  all.push_back(make("glu without bias",
                     [](const auto& x, auto plain) {
                       return plain ? reference::glu(x[0], {}, {}) : glu(x[0], {}, {});
                     },
                     {noise({n, 2 * c}) * 2}));
  all.push_back(make("weight_norm",
                     [](const auto& x, auto plain) {
                       return plain ? reference::weight_norm(x[0], x[1]) : weight_norm(x[0], x[1]);
                     },
                     {noise({n, c}), noise({n}, 8) + 2}));
  return all;
}

inline std::vector<Case> multi_step(const std::vector<int>& queries, const std::vector<int>& keys,
                                    int64_t width) {
  using testing::noise;
  const MultiStepAttention options{.query_offsets = lengths(queries), .key_offsets = lengths(keys)};
  const double shrink = 1.0 / std::sqrt(static_cast<double>(width));
  return {make("multi-step attention",
               [=](const auto& x, auto plain) {
                 return plain ? reference::multi_step_attention(x[0], x[1], x[2], options)
                              : multi_step_attention(x[0], x[1], x[2], options);
               },
               {noise({queries.back(), width}) * shrink, noise({keys.back(), width}, 8),
                noise({keys.back(), width}, 9)})};
}

/// Windows of every kind over sequences that are empty, shorter than the kernel and longer.
inline std::vector<TimeWindow> time_windows(const Offsets& offsets) {
  return {{.offsets = offsets, .kernel = 3},
          {.offsets = offsets, .kernel = 4, .border = Border::kCausal, .dilation = 2},
          {.offsets = offsets, .kernel = 5, .dilation = 3, .stride = 2},
          {.offsets = offsets, .kernel = 2, .border = Border::kCausal, .stride = 3},
          {.offsets = offsets, .kernel = 1}};
}

/// Small enough for finite differences.
inline std::vector<Case> small() {
  std::vector<Case> all = rows();
  for (const auto& more :
       {attention({0, 1, 1, 5}, {0, 2, 3, 6}, 8), shared_attention({0, 1, 1, 5}, {0, 2, 3, 6}, 3),
        attention_with_bias_of_queries({0, 1, 1, 7}, 3), limited_attention({0, 1, 1, 7}, 3),
        products(5, 6, 7), gates(3, 5), multi_step({0, 1, 1, 4}, {0, 2, 3, 6}, 5)})
    all.insert(all.end(), more.begin(), more.end());
  for (const TimeWindow& window : time_windows(lengths({0, 1, 1, 3, 8})))
    for (const Case& one : convolutions(window, 4, 3, 2)) all.push_back(one);
  return all;
}

/// Large enough for blocks, tiles and threads.
inline std::vector<Case> large() {
  std::vector<Case> all = rows();
  for (const auto& more : {attention({0, 1, 1, 18, 58}, {0, 17, 20, 26, 59}, 40),
                           shared_attention({0, 1, 1, 18, 58}, {0, 17, 20, 26, 59}, 20),
                           attention_with_bias_of_queries({0, 1, 1, 18, 58}, 20),
                           limited_attention({0, 1, 1, 18, 118}, 20),
                           attention({0, 36}, {0, 33}, 64), products(613, 301, 75), gates(61, 83),
                           multi_step({0, 1, 1, 18, 58}, {0, 17, 20, 26, 59}, 40)})
    all.insert(all.end(), more.begin(), more.end());
  for (const TimeWindow& window : time_windows(lengths({0, 1, 1, 3, 20, 58, 419})))
    for (const Case& one : convolutions(window, 93, 71, 3)) all.push_back(one);
  return all;
}

}  // namespace stretto::kernels::cases
