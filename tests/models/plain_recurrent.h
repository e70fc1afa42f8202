#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/recurrent_options.h"

namespace stretto::models::testing {

/// A recurrent encoder and decoder from their formulas: one sequence, one token, one layer after
/// the other, in ATen alone, without dropout and with zoneout at its mean. Weights are those of a
/// module with the children `encoder` and `decoder`.
class PlainRecurrent {
 public:
  struct State {
    at::Tensor h, c;  ///< [1, H]
  };
  struct Memory {
    at::Tensor rows;  ///< [T, M]
    std::vector<State> last;
  };

  PlainRecurrent(LstmEncoderOptions encoder, LstmDecoderOptions decoder,
                 const torch::nn::Module& parts)
      : encoder_(std::move(encoder)), decoder_(std::move(decoder)) {
    for (const auto& item : parts.named_parameters()) parameters_[item.key()] = item.value();
  }

  /// ids int64 [T].
  Memory encode(const at::Tensor& ids) const {
    Memory memory{.rows = embedded("encoder", ids), .last = {}};
    for (int64_t i = 0; i < encoder_.num_layers; ++i) {
      const std::string name = "encoder.layers." + std::to_string(i);
      const at::Tensor in = memory.rows;
      State last;
      if (encoder_.is_bidirectional(i)) {
        State back;
        const at::Tensor ahead = run(name + ".forward", encoder_, in, {}, last);
        const at::Tensor behind = run(name + ".backward", encoder_, in.flip(0), {}, back).flip(0);
        memory.rows = at::cat({ahead, behind}, 1);
        last.h = at::cat({last.h, back.h}, 1);
        if (last.c.defined()) last.c = at::cat({last.c, back.c}, 1);
      } else {
        memory.rows = run(name, encoder_, in, {}, last);
      }
      if (i >= encoder_.residual_from) memory.rows = memory.rows + in;
      memory.last.push_back(last);
    }
    return memory;
  }

  /// ids int64 [T]: the token before each target -> [T, D]; `weights` [T, memory rows] unless null.
  at::Tensor decode(const at::Tensor& ids, const Memory& memory,
                    at::Tensor* weights = nullptr) const {
    const at::Tensor in = embedded("decoder", ids);
    const std::vector<State> first = initial(memory);
    std::vector<at::Tensor> states, contexts, shares;
    State now = first[0];
    at::Tensor context = at::zeros({1, memory.rows.size(1)}, memory.rows.options());
    for (int64_t t = 0; t < in.size(0); ++t) {
      const at::Tensor gates = of_input("decoder.layers.0", in.narrow(0, t, 1)) +
                               at::linear(context, at("decoder.layers.0.context.weight"));
      now = step("decoder.layers.0", decoder_, gates, now);
      const at::Tensor share = at::softmax(scores(now.h, memory.rows), 1);
      context = at::matmul(share, memory.rows);
      states.push_back(now.h);
      contexts.push_back(context);
      shares.push_back(share);
    }
    if (weights != nullptr) *weights = at::cat(shares);
    return above(in, at::cat(states), at::cat(contexts), first);
  }

 private:
  at::Tensor at(const std::string& name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? at::Tensor() : found->second;
  }

  at::Tensor embedded(const std::string& part, const at::Tensor& ids) const {
    return at(part + ".embedding.weight").index_select(0, ids);
  }

  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    const at::Tensor gain = at(name + ".weight");
    return gain.defined() ? at::layer_norm(x, {x.size(1)}, gain, at(name + ".bias")) : x;
  }

  at::Tensor of_input(const std::string& layer, const at::Tensor& x) const {
    return normed(at::linear(x, at(layer + ".input.weight"), at(layer + ".input.bias")),
                  layer + ".input_norm");
  }

  template <class Options>
  State step(const std::string& layer, const Options& options, const at::Tensor& gates,
             State before) const {
    const at::Tensor weight = at(layer + ".hidden.weight");
    if (!before.h.defined()) before.h = at::zeros({1, weight.size(1)}, weight.options());
    if (!before.c.defined()) before.c = at::zeros_like(before.h);
    const at::Tensor product =
        normed(at::linear(before.h, weight, at(layer + ".hidden.bias")), layer + ".hidden_norm");
    const double keep_h = options.zoneout_hidden, keep_c = options.zoneout_cell;
    if (options.cell == "gru") {
      const auto x = gates.chunk(3, 1), p = product.chunk(3, 1);
      const at::Tensor r = at::sigmoid(x[0] + p[0]), z = at::sigmoid(x[1] + p[1]);
      const at::Tensor h = (1 - z) * at::tanh(x[2] + r * p[2]) + z * before.h;
      return {keep_h * before.h + (1 - keep_h) * h, {}};
    }
    const auto gate = (gates + product).chunk(4, 1);
    const at::Tensor c = at::sigmoid(gate[1]) * before.c + at::sigmoid(gate[0]) * at::tanh(gate[2]);
    const at::Tensor h = at::sigmoid(gate[3]) * at::tanh(normed(c, layer + ".cell_norm"));
    return {keep_h * before.h + (1 - keep_h) * h, keep_c * before.c + (1 - keep_c) * c};
  }

  template <class Options>
  at::Tensor run(const std::string& layer, const Options& options, const at::Tensor& x, State now,
                 State& last) const {
    const at::Tensor gates = of_input(layer, x);
    std::vector<at::Tensor> rows;
    for (int64_t t = 0; t < x.size(0); ++t) {
      now = step(layer, options, gates.narrow(0, t, 1), now);
      rows.push_back(now.h);
    }
    last = now;
    return at::cat(rows);
  }

  /// [1, memory rows]
  at::Tensor scores(const at::Tensor& h, const at::Tensor& rows) const {
    const at::Tensor keys = at::linear(rows, at("decoder.attention.key.weight"));
    const at::Tensor gain = at("decoder.attention.gain");
    if (!decoder_.has_query()) {
      const at::Tensor products = at::matmul(h, keys.t());
      return gain.defined() ? products * gain : products;
    }
    const at::Tensor query =
        at::linear(h, at("decoder.attention.query.weight"), at("decoder.attention.query.bias"));
    at::Tensor v = at("decoder.attention.score");
    if (gain.defined()) v = gain * v / v.norm();
    return at::matmul(at::tanh(keys + query), v).unsqueeze(0);
  }

  std::vector<State> initial(const Memory& memory) const {
    if (decoder_.initial_state == "last") return memory.last;
    std::vector<State> states(static_cast<size_t>(decoder_.num_layers));
    if (decoder_.initial_state == "zero") return states;
    const auto first = at::linear(memory.rows.mean(0, /*keepdim=*/true),
                                  at("decoder.initial.weight"), at("decoder.initial.bias"))
                           .chunk(decoder_.num_layers, 1);
    for (size_t i = 0; i < states.size(); ++i) states[i] = {first[i].tanh(), first[i]};
    return states;
  }

  at::Tensor above(const at::Tensor& in, const at::Tensor& states, const at::Tensor& contexts,
                   const std::vector<State>& first) const {
    at::Tensor given = contexts;
    if (decoder_.context_to == "gnmt") {
      given = at::cat(
          {at::zeros_like(contexts.narrow(0, 0, 1)), contexts.narrow(0, 0, contexts.size(0) - 1)});
    }
    at::Tensor x = decoder_.residual_from == 0 ? states + in : states;
    for (int64_t i = 1; i < decoder_.num_layers; ++i) {
      State last;
      const at::Tensor out = run("decoder.layers." + std::to_string(i), decoder_,
                                 decoder_.context_to == "first" ? x : at::cat({x, given}, 1),
                                 first[static_cast<size_t>(i)], last);
      x = i >= decoder_.residual_from ? out + x : out;
    }
    const at::Tensor output = at("decoder.output.weight");
    if (!output.defined()) return x;
    if (decoder_.output == "state") return at::linear(x, output);
    return at::tanh(at::linear(at::cat({x, contexts}, 1), output));
  }

  LstmEncoderOptions encoder_;
  LstmDecoderOptions decoder_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace stretto::models::testing
