#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "models/decoder.h"
#include "models/parts.h"
#include "models/seq2seq_model.h"
#include "models/seq2seq_options.h"
#include "nn/output_loss.h"
#include "text/special_ids.h"

namespace stretto::models {

/// What a model must know beside its options.
struct ModelSetup {
  int64_t src_rows = 0;         ///< rows of the source embedding; may be rounded up
  int64_t tgt_rows = 0;         ///< rows of the target embedding and of the output projection
  int64_t num_tgt_classes = 0;  ///< real target vocabulary, at most tgt_rows; the rest has p = 0
  /// The tokenizers' special ids. A model that embeds needs `pad` (the row that starts at zero),
  /// one that runs the target's `bos`, and one of two sources the source's `eos`, which is their
  /// boundary. Where nothing is computed (names, sizes, cost) none is needed.
  text::SpecialIds src_specials = {}, tgt_specials = {};
  uint64_t seed = 1;             ///< of the first weights
  bool draws_weights = true;     ///< false: matrices are unset, since weights are loaded at once
  at::Device device = at::kCPU;  ///< at::kMeta counts parameters without memory
};

/// The encoder that is chosen.
/// @param style  what layers of a `transformer` are like; other kinds say it in their own options
/// @param num_attentions  of `conv`: layers of the decoder that attend to it; 0 = none
std::shared_ptr<Encoder> make_encoder(const EncoderChoice& choice, const LayerStyle& style,
                                      const PartSetup& setup, int64_t num_attentions = 0);

/// The decoder that is chosen. A `transformer` needs no memory: without PartSetup::memory_width it
/// is a language model, and start() takes no_memory() (models/memory.h).
/// Throws c10::Error for other kinds without memory_width.
std::shared_ptr<Decoder> make_decoder(const DecoderChoice& choice, const LayerStyle& style,
                                      const PartSetup& setup);

/// The encoder-decoder of these parts, with first weights that depend on seed and parameter name.
///
/// @param loss  what `losses::make_loss` gave; may be empty for a model that only decodes
/// @param pair_loss  what `losses::make_pair_loss` gave: where it is not empty, training runs each
///                   micro-batch twice and minimises it
/// Throws Error(kUsage) for options that contradict each other (models/option_conflicts.h) or
/// `setup` (all embeddings tied over two vocabularies).
std::shared_ptr<Seq2SeqModel> make_model(const Seq2SeqOptions& options, const ModelSetup& setup,
                                         nn::OutputLoss loss, nn::OutputLoss pair_loss = {});

/// Number of parameters, tied ones once.
int64_t num_parameters(const torch::nn::Module& module);

}  // namespace stretto::models
