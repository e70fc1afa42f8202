#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/pairs/pair_columns.h"
#include "models/decoders/recurrent.h"
#include "models/encoders/recurrent.h"
#include "models/packed.h"
#include "tests/text/special_ids.h"

/// Small recurrent encoders with decoders, and batches for them.
namespace stretto::models::testing::recurrent {

constexpr int64_t kWords = 24, kModelWidth = 8;

struct Pairing {
  std::string text;
  LstmEncoderOptions encoder = {};
  LstmDecoderOptions decoder = {};
};

inline Pairing pairing(const std::string& text, const std::string& cell, int64_t layers) {
  Pairing made{.text = text};
  made.encoder.cell = made.decoder.cell = cell;
  made.encoder.num_layers = made.decoder.num_layers = layers;
  // Small widths: weights large enough that a wrong wire shows.
  made.encoder.init_bound = made.decoder.init_bound = 0.5;
  return made;
}

inline Pairing gnmt() {
  return pairing("GNMT v2", "lstm", 4);
}

/// Every cell, score, place of the context, output, initial state, and width at least once.
inline std::vector<Pairing> pairings() {
  std::vector<Pairing> all{gnmt()};
  all.push_back(pairing("GNMT of GRUs, from the mean", "gru", 3));
  all.back().decoder.attention = "bahdanau";
  all.back().decoder.context_to = "gnmt";
  all.back().decoder.initial_state = "mean";
  all.push_back(pairing("normed, all bidirectional, scaled Luong", "norm_lstm", 2));
  all.back().encoder.bidirectional_layers = 2;
  all.back().decoder.attention = "luong_scaled";
  all.back().decoder.context_to = "first";
  all.back().decoder.output = "attended";
  all.push_back(pairing("narrow, from the last states, Luong", "lstm", 2));
  all.back().encoder.bidirectional = false;
  all.back().encoder.hidden_dim = all.back().decoder.hidden_dim = 6;
  all.back().decoder.attention = "luong";
  all.back().decoder.context_to = "first";
  all.back().decoder.initial_state = "last";
  all.push_back(pairing("widths of their own, zoneout", "lstm", 2));
  all.back().encoder.bidirectional_layers = 2;
  all.back().encoder.hidden_dim = 6;
  all.back().encoder.zoneout_hidden = all.back().decoder.zoneout_hidden = 0.25;
  all.back().encoder.zoneout_cell = all.back().decoder.zoneout_cell =
      0.5;  // shares that masks have exactly
  all.back().decoder.hidden_dim = 10;
  all.back().decoder.attention_width = 7;
  all.back().decoder.output = "attended";
  all.back().decoder.initial_state = "mean";
  all.push_back(pairing("residuals from the first layer on", "gru", 2));
  all.back().encoder.bidirectional_layers = 2;
  all.back().encoder.residual_from = all.back().decoder.residual_from = 0;
  all.back().decoder.initial_state = "last";
  return all;
}

/// An encoder and a decoder without what joins them to a vocabulary.
struct Joined : torch::nn::Module {
  explicit Joined(const Pairing& made, at::ScalarType dtype = at::kDouble) {
    const nn::Init init(3, at::kCPU);
    PartSetup setup{.init = init.child("encoder"),
                    .d_model = kModelWidth,
                    .rows = kWords,
                    .pad = 0,
                    .first_site = kEncoderSites};
    encoder = register_module("encoder", make_lstm_encoder(made.encoder, setup));
    setup.init = init.child("decoder");
    setup.memory_width = encoder->width();
    setup.first_site = kDecoderSites;
    decoder = register_module("decoder", make_lstm_decoder(made.decoder, setup));
    to(dtype);
  }

  at::Tensor rows(const data::Batch& batch, const ForwardContext& context) const {
    const auto* ids = context.training ? &batch.sample_ids : nullptr;
    return decoder->forward(
        pack(shift_right(data::target(batch), stretto::testing::kSpecials.bos), ids, at::kCPU),
        encoder->forward(pack(data::source(batch), ids, at::kCPU), context), context);
  }

  std::shared_ptr<Encoder> encoder;
  std::shared_ptr<Decoder> decoder;
};

inline void add(data::PackedTokens& tokens, const std::vector<int64_t>& ids) {
  tokens.append(ids);
}

inline data::Batch three_pairs() {
  auto batch = data::pair_batch({17, 4, 99});
  add(data::source(batch), {5, 9, 14, 7, 3});
  add(data::source(batch), {3});
  add(data::source(batch), {20, 11, 6, 3});
  add(data::target(batch), {10, 4, 3});
  add(data::target(batch), {13, 12, 5, 18, 19, 3});
  add(data::target(batch), {3});
  return batch;
}

inline data::Batch two_pairs() {
  auto batch = data::pair_batch({1000, 2});
  add(data::source(batch), {4, 4, 15, 3});
  add(data::source(batch), {16, 3});
  add(data::target(batch), {6, 7, 8, 9, 3});
  add(data::target(batch), {20, 3});
  return batch;
}

inline at::Tensor ids_of(const data::PackedTokens& tokens, int64_t sequence) {
  return at::tensor(tokens.values, at::kLong)
      .slice(0, tokens.offsets[static_cast<size_t>(sequence)],
             tokens.offsets[static_cast<size_t>(sequence) + 1]);
}

/// A number that every row has its own part in.
inline at::Tensor probe(const at::Tensor& rows) {
  return (rows * at::arange(rows.numel(), rows.options()).sin().view_as(rows)).sum();
}

inline at::Tensor taken_gradients(torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (at::Tensor& parameter : module.parameters()) {
    const at::Tensor& grad = parameter.grad();
    all.push_back(grad.defined() ? grad.flatten().clone() : at::zeros_like(parameter).flatten());
    parameter.mutable_grad() = at::Tensor();
  }
  return at::cat(all);
}

inline double apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

}  // namespace stretto::models::testing::recurrent
