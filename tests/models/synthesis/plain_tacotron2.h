#pragma once

#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "models/synthesis/synthesis_part.h"
#include "models/synthesis/tacotron2_options.h"
#include "tests/kernels/gradcheck.h"

/// Tacotron 2 for one sentence in evaluation, written out with libtorch's operators on tensors by
/// their names. What the project's own is compared with.
namespace stretto::models::testing::synthesis {

class PlainTacotron2 {
 public:
  PlainTacotron2(const torch::nn::Module& model, const Tacotron2Options& options, int64_t width)
      : options_(options), width_(width) {
    for (const auto& item : model.named_parameters()) all_[item.key()] = item.value();
    for (const auto& item : model.named_buffers()) all_[item.key()] = item.value();
  }

  struct Spoken {
    at::Tensor before, after, stop, attention;
  };

  /// ids int64 [S], frames [N, W]; the key of the pre-net's masks as prenet_step_key() has it
  Spoken speak(const at::Tensor& ids, const at::Tensor& frames, uint64_t seed, int64_t key) const {
    const at::Tensor memory = encode(ids);
    const at::Tensor keys = linear(memory, "decoder.key");
    const at::TensorOptions like = memory.options();
    const int64_t units = options_.decoder_dim, r = options_.reduction;
    at::Tensor h1 = at::zeros({1, units}, like), c1 = h1, h2 = h1, c2 = h1;
    at::Tensor context = at::zeros({1, memory.size(1)}, like);
    at::Tensor last = at::zeros({memory.size(0)}, like), sum = last;
    std::vector<at::Tensor> written, stops, shares;
    for (int64_t step = 0; step * r < frames.size(0); ++step) {
      const at::Tensor read = step == 0 ? at::zeros({1, width_}, like)
                                        : frames.narrow(0, step * r - 1, 1).narrow(1, 0, width_);
      const at::Tensor p = prenet(read, seed, key, step);
      lstm(linear(p, "decoder.lower.input") + linear(context, "decoder.context") +
               linear(h1, "decoder.lower.hidden"),
           h1, c1);
      last = attend(keys, h1, last, sum);
      sum = sum + last;
      context = at::matmul(last.unsqueeze(0), memory);
      lstm(linear(at::cat({h1, context}, 1), "decoder.upper.input") +
               linear(h2, "decoder.upper.hidden"),
           h2, c2);
      const at::Tensor row = at::cat({h2, context}, 1);
      written.push_back(linear(row, "decoder.projection").view({r, width_}));
      stops.push_back(linear(row, "decoder.stop").view({r}));
      shares.push_back(last);
    }
    Spoken spoken;
    spoken.before = at::cat(written).narrow(0, 0, frames.size(0));
    spoken.stop = at::cat(stops).narrow(0, 0, frames.size(0));
    spoken.attention = at::cat(shares);
    spoken.after = spoken.before + convolved(spoken.before, "postnet", options_.postnet_layers,
                                             options_.postnet_kernel, /*is_postnet=*/true);
    return spoken;
  }

 private:
  const at::Tensor& named(const std::string& name) const { return all_.at(name); }

  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    const auto bias = all_.find(name + ".bias");
    const at::Tensor y = at::matmul(x, named(name + ".weight").t());
    return bias == all_.end() ? y : y + bias->second;
  }

  /// One LSTM step with zoneout at its mean.
  void lstm(const at::Tensor& gates, at::Tensor& h, at::Tensor& c) const {
    const auto parts = gates.chunk(4, 1);
    const double keep = std::round(options_.zoneout * 65536) / 65536;
    const at::Tensor next = at::sigmoid(parts[1]) * c + at::sigmoid(parts[0]) * at::tanh(parts[2]);
    h = keep * h + (1 - keep) * at::sigmoid(parts[3]) * at::tanh(next);
    c = keep * c + (1 - keep) * next;
  }

  at::Tensor prenet(at::Tensor x, uint64_t seed, int64_t key, int64_t step) const {
    for (int64_t i = 0; i < options_.prenet_layers; ++i) {
      x = linear(x, "decoder.prenet.layer" + std::to_string(i)).relu();
      at::Tensor mask = at::zeros_like(x);
      const auto threshold = std::lround(options_.prenet_dropout * 65536);
      const uint64_t row = mix64(static_cast<uint64_t>(key), static_cast<uint64_t>(step));
      const uint64_t site = mix64(seed, kSynthesisPrenet + static_cast<uint64_t>(i));
      for (int64_t j = 0; j < x.size(1); ++j) {
        const auto words = Philox::at(site, row, static_cast<uint64_t>(j / 8));
        const uint32_t word = words[static_cast<size_t>(j % 8 / 2)];
        const auto lane = static_cast<int64_t>(j % 2 == 0 ? word & 0xffff : word >> 16);
        if (lane >= threshold) mask[0][j] = 65536.0 / static_cast<double>(65536 - threshold);
      }
      x = x * mask;
    }
    return x;
  }

  /// Attention weights [S].
  at::Tensor attend(const at::Tensor& keys, const at::Tensor& h, const at::Tensor& last,
                    const at::Tensor& sum) const {
    const int64_t kernel = options_.location_kernel;
    const at::Tensor filters = named("decoder.location_filters").view({-1, 2, kernel});
    const at::Tensor seen = at::conv1d(at::stack({last, sum}).unsqueeze(0), filters, {}, 1,
                                       kernel / 2);  // [1, F, S]
    const at::Tensor located = at::matmul(seen.squeeze(0).t(), named("decoder.location_dense").t());
    const at::Tensor scores =
        at::matmul(at::tanh(keys + linear(h, "decoder.query") + located), named("decoder.score"));
    return at::softmax(scores, 0);
  }

  /// Convolutions with norms in evaluation; x [T, C].
  at::Tensor convolved(const at::Tensor& x, const std::string& stack, int64_t layers,
                       int64_t kernel, bool is_postnet) const {
    at::Tensor y = x.t().unsqueeze(0);
    for (int64_t i = 0; i < layers; ++i) {
      const std::string number = std::to_string(i);
      const std::string place = stack + ".convolution" + number, norm = stack + ".norm" + number;
      const at::Tensor weight = named(place + ".weight");
      y = at::conv1d(y, weight.view({weight.size(0), kernel, -1}).permute({0, 2, 1}),
                     named(place + ".bias"), 1, kernel / 2);
      y = at::batch_norm(y, named(norm + ".weight"), named(norm + ".bias"),
                         named(norm + ".running_mean"), named(norm + ".running_var"), false, 0.1,
                         options_.norm_epsilon, false);
      if (!is_postnet) y = y.relu();
      if (is_postnet && i + 1 < layers) y = y.tanh();
    }
    return y.squeeze(0).t();
  }

  at::Tensor encode(const at::Tensor& ids) const {
    const at::Tensor x =
        convolved(named("encoder.embedding.weight").index_select(0, ids), "encoder.convolutions",
                  options_.encoder_convolutions, options_.encoder_kernel, /*is_postnet=*/false);
    const auto run = [&](const std::string& name, bool reverse) {
      at::Tensor h = at::zeros({1, options_.encoder_dim / 2}, x.options()), c = h;
      std::vector<at::Tensor> rows(static_cast<size_t>(x.size(0)));
      for (int64_t i = 0; i < x.size(0); ++i) {
        const int64_t place = reverse ? x.size(0) - 1 - i : i;
        lstm(linear(x.narrow(0, place, 1), "encoder." + name + ".input") +
                 linear(h, "encoder." + name + ".hidden"),
             h, c);
        rows[static_cast<size_t>(place)] = h;
      }
      return at::cat(rows);
    };
    return at::cat({run("forward", false), run("backward", true)}, 1);
  }

  Tacotron2Options options_;
  int64_t width_;
  std::map<std::string, at::Tensor> all_;
};

}  // namespace stretto::models::testing::synthesis
