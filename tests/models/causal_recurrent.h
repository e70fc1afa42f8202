#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kernels/reference.h"
#include "models/causal_recurrent.h"
#include "models/packed.h"
#include "tests/models/recurrent_pairings.h"

/// Small recurrent language models, lanes for them, and their plain form.
namespace stretto::models::testing::recurrent {

constexpr uint64_t kCausalSites = 5000;
constexpr int64_t kUnits = 6;

/// Without dropout and regulariser.
inline CausalLstmOptions bare_options(const std::string& cell) {
  return {.cell = cell,
          .num_layers = 3,
          .hidden_dim = kUnits,
          .embedding_dropout = 0,
          .input_dropout = 0,
          .hidden_dropout = 0,
          .output_dropout = 0,
          .weight_drop = 0,
          .activation_reg = 0,
          .temporal_reg = 0,
          .init_bound = 0.5,
          .embedding_bound = 0.5};
}

/// With all of it.
inline CausalLstmOptions full_options(const std::string& cell) {
  CausalLstmOptions options = bare_options(cell);
  options.embedding_dropout = 0.2;
  options.input_dropout = 0.3;
  options.hidden_dropout = 0.25;
  options.output_dropout = 0.4;
  options.weight_drop = 0.5;
  options.activation_reg = 2;
  options.temporal_reg = 1;
  return options;
}

/// @param output_width  0 = model width, as with a tied table
inline std::shared_ptr<CausalRecurrent> causal(const CausalLstmOptions& options,
                                               at::ScalarType dtype = at::kDouble,
                                               int64_t output_width = kModelWidth) {
  const PartSetup setup{.init = nn::Init(3, at::kCPU).child("decoder"),
                        .d_model = kModelWidth,
                        .rows = kWords,
                        .first_site = kCausalSites};
  auto model = std::make_shared<CausalRecurrent>(options, setup, output_width);
  model->to(dtype);
  return model;
}

/// Stretches of lanes, with the samples that they are.
struct Stretches {
  data::PackedTokens tokens;
  std::vector<int64_t> samples;

  void append(const std::vector<int64_t>& ids, int64_t sample) {
    tokens.append(ids);
    samples.push_back(sample);
  }
  nn::PackedRows rows() const { return pack(tokens, &samples, at::kCPU); }
  Stretches lane(int64_t number) const {
    Stretches one;
    const auto ids = tokens.sequence(number);
    one.append({ids.begin(), ids.end()}, samples[static_cast<size_t>(number)]);
    return one;
  }
};

inline Stretches three_stretches() {
  Stretches made;
  made.append({5, 9, 14, 5, 3}, 17);
  made.append({9}, 4);
  made.append({20, 11, 5, 3}, 99);
  return made;
}

/// Numbers for the state of so many lanes, none of them 0.
inline std::vector<at::Tensor> any_state(const CausalRecurrent& model, int64_t lanes,
                                         at::ScalarType dtype = at::kDouble) {
  std::vector<at::Tensor> state;
  for (const RecurrentStateShape& shape : model.state_shapes()) {
    const auto size = static_cast<double>(state.size() + 1);
    state.push_back((at::arange(lanes * shape.width, at::kDouble) * size)
                        .cos()
                        .view({lanes, shape.width})
                        .to(dtype));
  }
  return state;
}

inline std::vector<at::Tensor> lane_of(const std::vector<at::Tensor>& state, int64_t lane) {
  std::vector<at::Tensor> one;
  for (const at::Tensor& of_lanes : state) one.push_back(of_lanes.narrow(0, lane, 1));
  return one;
}

/// The stack from its formulas in double: one lane, one layer, one step after the other, with masks
/// that are made of the rule of kernels/reference.h.
class PlainCausal {
 public:
  struct Lane {
    at::Tensor rows, before_dropout;  ///< [T, D]
    std::vector<at::Tensor> state;
  };

  PlainCausal(CausalLstmOptions options, const torch::nn::Module& model,
              const ForwardContext& context)
      : options_(std::move(options)), context_(context) {
    for (const auto& item : model.named_parameters()) parameters_[item.key()] = item.value();
  }

  /// @param ids  int64 [T]. @param state  [1, H] each
  Lane read(const at::Tensor& ids, const std::vector<at::Tensor>& state, int64_t sample) const {
    at::Tensor x = at("embedding.weight").index_select(0, ids) *
                   factors(options_.embedding_dropout, kVocabularySite, ids, 1);
    Lane lane;
    const size_t each = options_.cell == "gru" ? 1 : 2;
    for (int64_t i = 0; i < options_.num_layers; ++i) {
      const double p = i == 0 ? options_.input_dropout : options_.hidden_dropout;
      x = dropped(x, p, i, sample);
      const auto place = static_cast<size_t>(i) * each;
      at::Tensor h = state[place], c = each == 2 ? state[place + 1] : at::Tensor();
      x = run("layers." + std::to_string(i), i, x, h, c);
      lane.state.push_back(h);
      if (each == 2) lane.state.push_back(c);
    }
    lane.before_dropout = x;
    lane.rows = dropped(x, options_.output_dropout, options_.num_layers, sample);
    return lane;
  }

  /// What a lane adds to the loss.
  at::Tensor regulariser(const Lane& lane) const {
    at::Tensor sum = lane.rows.square().mean(1).sum() * options_.activation_reg;
    const int64_t length = lane.rows.size(0);
    if (length == 1) return sum;
    const at::Tensor change =
        lane.before_dropout.slice(0, 1) - lane.before_dropout.slice(0, 0, length - 1);
    // The mean over changes, of as many tokens as the lane has.
    return sum + change.square().mean() * static_cast<double>(length) * options_.temporal_reg;
  }

 private:
  at::Tensor at(const std::string& name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? at::Tensor() : found->second;
  }

  at::Tensor factors(double p, uint64_t site, const at::Tensor& row_keys, int64_t count) const {
    if (!context_.training || p == 0) return at::ones({row_keys.size(0), count}, at::kDouble);
    const kernels::Dropout dropout{
        .p = p, .key = mix64(context_.dropout_key, kCausalSites + site), .row_keys = row_keys};
    return kernels::reference::dropout_factors(dropout, row_keys, 0, count);
  }

  at::Tensor dropped(const at::Tensor& x, double p, int64_t layer, int64_t sample) const {
    std::vector<int64_t> keys;
    for (int64_t t = 0; t < x.size(0); ++t) {
      const auto place = static_cast<uint64_t>(options_.variational ? 0 : t);
      keys.push_back(static_cast<int64_t>(mix64(static_cast<uint64_t>(sample), place)));
    }
    return x * factors(p, static_cast<uint64_t>(layer) * 8, at::tensor(keys, at::kLong), x.size(1));
  }

  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    const at::Tensor gain = at(name + ".weight");
    return gain.defined() ? at::layer_norm(x, {x.size(1)}, gain, at(name + ".bias")) : x;
  }

  at::Tensor run(const std::string& layer, int64_t number, const at::Tensor& x, at::Tensor& h,
                 at::Tensor& c) const {
    const at::Tensor whole = at(layer + ".hidden.weight");
    const uint64_t site = static_cast<uint64_t>(number) * 8 + 7;
    const at::Tensor weight = whole * factors(options_.weight_drop, site,
                                              at::arange(whole.size(0), at::kLong), whole.size(1));
    const at::Tensor gates =
        normed(at::linear(x, at(layer + ".input.weight"), at(layer + ".input.bias")),
               layer + ".input_norm");
    std::vector<at::Tensor> rows;
    for (int64_t t = 0; t < x.size(0); ++t) {
      step(layer, gates.narrow(0, t, 1), weight, h, c);
      rows.push_back(h);
    }
    return at::cat(rows);
  }

  void step(const std::string& layer, const at::Tensor& gates, const at::Tensor& weight,
            at::Tensor& h, at::Tensor& c) const {
    const at::Tensor product =
        normed(at::linear(h, weight, at(layer + ".hidden.bias")), layer + ".hidden_norm");
    if (options_.cell == "gru") {
      const auto in = gates.chunk(3, 1), back = product.chunk(3, 1);
      const at::Tensor r = at::sigmoid(in[0] + back[0]), z = at::sigmoid(in[1] + back[1]);
      h = (1 - z) * at::tanh(in[2] + r * back[2]) + z * h;
      return;
    }
    const auto gate = (gates + product).chunk(4, 1);
    c = at::sigmoid(gate[1]) * c + at::sigmoid(gate[0]) * at::tanh(gate[2]);
    h = at::sigmoid(gate[3]) * at::tanh(normed(c, layer + ".cell_norm"));
  }

  CausalLstmOptions options_;
  ForwardContext context_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace stretto::models::testing::recurrent
