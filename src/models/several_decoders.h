#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/encoder_decoder.h"

namespace stretto::models {

/// One of several decoders.
struct HeadParts {
  std::string name;  ///< without a dot
  std::function<std::shared_ptr<Decoder>(const PartSetup&)> decoder;
};

/// One encoder, or one for each of two sources, and several decoders, each with an output
/// projection of its own: a batch goes through the encoder and through the decoder number
/// Batch::stream. Parameters are named like `decoders.de.layers.0.self_attention.qkv.weight`.
///
/// `tie_embeddings`: "all" keeps one table, `embedding.weight`, which is also every decoder's
/// embedding and projection; "decoder" has `encoder.embedding.weight`, and one table for each
/// decoder, `decoders.de.embedding.weight`; "none" adds `outputs.de.weight`.
///
/// Decoders share their sites of dropout: no sample goes through two of them, and the identities of
/// samples differ between streams.
class SeveralDecoders : public Seq2SeqModel {
 public:
  /// @param parts  its `decoder` is not used
  SeveralDecoders(const EncoderDecoderParts& parts, const std::vector<HeadParts>& heads,
                  const ModelSetup& setup, const nn::OutputLosses& losses);

  /// Throws std::out_of_range for a stream without a decoder.
  LossOutput loss(const data::Batch& batch, const ForwardContext& context) override;
  LossOutput loss(const data::Batch& batch, const PairTensors& tensors,
                  const ForwardContext& context) override;
  PairTensors tensors_of(const data::Batch& batch, bool training,
                         c10::Device device) const override;
  /// Throws std::logic_error: only head() decodes.
  std::unique_ptr<decoding::StepModel> start(const data::PackedTokens& src,
                                             int64_t lanes_per_src) override;
  std::vector<std::string> heads() const override { return names_; }
  std::shared_ptr<Seq2SeqModel> head(size_t number) override { return heads_.at(number); }
  std::vector<VocabularyTable> vocabulary_tables() const override;
  std::vector<optim::TiedName> tied_names() const override;
  text::SpecialIds target_specials() const override { return heads_.front()->target_specials(); }
  int64_t max_target_length() const override;  ///< of the head with the fewest positions
  /// The mean over heads: of a batch of each, as often.
  double operations(double src_length, double tgt_length) const override;
  std::vector<torch::Tensor> alignments(const data::Batch& batch, int64_t layer) override;

 private:
  EncoderDecoder& head_of(const data::Batch& batch) const;

  std::vector<std::string> names_;
  bool ties_all_, ties_none_, output_bias_;
  SourceEncoders encoders_;
  /// Each with the shared modules, and not registered: names of parameters are those given here.
  std::vector<std::shared_ptr<EncoderDecoder>> heads_;
};

}  // namespace stretto::models
