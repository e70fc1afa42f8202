#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/decoder.h"
#include "models/head.h"
#include "models/parts.h"
#include "models/registry.h"
#include "models/seq2seq_model.h"

namespace stretto::models {

/// How an encoder-decoder is put together.
struct EncoderDecoderParts {
  int64_t d_model = 512;
  std::string tie_embeddings = "all";  ///< all, decoder, none
  bool output_bias = false;
  std::string embedding_scale = "auto";  ///< auto, sqrt, none: see models/embedding_options.h
  /// How the rows of the table start that several parts look up; without it N(0, D^-0.5).
  std::optional<nn::InitRule> shared_rows = std::nullopt;
  std::vector<nn::InitRule> init = {};  ///< before the parts' own rules; see nn::Init
  nn::LoraOptions lora = {};            ///< off by default
  nn::AdapterOptions adapter = {};      ///< off by default
  /// Probabilities that training drops a whole word of a side.
  double src_word_dropout = 0, tgt_word_dropout = 0;
  std::function<std::shared_ptr<Encoder>(const PartSetup&)> encoder;
  /// The encoder of the second source (data/pairs/two_sources.h); null = the model reads one.
  std::function<std::shared_ptr<Encoder>(const PartSetup&)> second_encoder = nullptr;
  std::function<std::shared_ptr<Decoder>(const PartSetup&)> decoder;

  bool ties_output() const { return tie_embeddings != "none"; }
  /// The decoder's table, where it is the output projection too; null = the head has its own.
  /// Throws c10::Error for a decoder without one.
  nn::Embedding output_table(const Decoder& decoder) const;
  nn::InitRule rows_of_shared_table() const {
    return shared_rows.value_or(nn::normal_of_width(d_model));
  }

  /// Where the model's first weights come from.
  nn::Init root(const ModelSetup& setup) const;
  /// The one table of a model whose tables are all tied; else null. Its owner registers it.
  nn::Embedding joint_table(const nn::Init& root, const ModelSetup& setup) const;
  /// What an encoder or decoder at `init` is built from. @param joint  joint_table()
  PartSetup encoder_setup(const nn::Init& init, const ModelSetup& setup,
                          const nn::Embedding& joint) const;
  PartSetup decoder_setup(const nn::Init& init, const ModelSetup& setup, const nn::Embedding& joint,
                          int64_t memory_width) const;
};

/// What reads the source: one encoder, `encoder`, or one for each of two sources, `encoders.0` and
/// `encoders.1`.
struct SourceEncoders {
  std::shared_ptr<Encoder> first;
  std::shared_ptr<Encoder> second;  ///< null: one source

  /// @param root  of the model; @param joint  EncoderDecoderParts::joint_table()
  /// Throws c10::Error for two encoders whose rows differ in width.
  static SourceEncoders make(const EncoderDecoderParts& parts, const nn::Init& root,
                             const ModelSetup& setup, const nn::Embedding& joint);
  void register_in(torch::nn::Module& model) const;

  int64_t width() const { return first->width(); }
  /// Floating-point operations for each row of the column; each of two sources is half of it.
  double operations(double length) const;
  /// Their tables of tokens, where the model has no joint one.
  std::vector<VocabularyTable> vocabulary_tables() const;
  /// What they look up in: in the joint table, or the second in the first one's.
  std::vector<optim::TiedName> tied_names(bool joint) const;

 private:
  bool share_table() const;
};

/// The modules of an encoder-decoder that exist already, for a model that shares some of them
/// (models/several_decoders.h).
struct JoinedParts {
  nn::Embedding embedding{nullptr};  ///< when all are tied
  SourceEncoders encoders;
  std::shared_ptr<Decoder> decoder;
  std::shared_ptr<Head> head;
};

/// An encoder, a decoder that attends to it, and a head that projects to the vocabulary; parameters
/// are named like `encoder.layers.0.self_attention.qkv.weight`.
///
/// `tie_embeddings`: "all" keeps one table, `embedding.weight`; "decoder" one for each side,
/// `encoder.embedding.weight` and `decoder.embedding.weight`, the latter also projecting to the
/// vocabulary; "none" adds `output.weight`, of the head (models/heads/token.h). With `output_bias`
/// the head has `output.bias`.
///
/// A model of two sources has an encoder for each, `encoders.0` and `encoders.1`, and the decoder
/// attends to the rows of both (models/join_memory.h). With "decoder" both read
/// `encoders.0.embedding.weight`, with "none" each has a table of its own.
///
/// A part multiplies the rows that it looks up by its own factor, also those of a shared table.
class EncoderDecoder : public Seq2SeqModel {
 public:
  EncoderDecoder(const EncoderDecoderParts& parts, const ModelSetup& setup,
                 nn::OutputLosses losses);
  /// A model of modules that others use too; draws nothing.
  EncoderDecoder(JoinedParts joined, const EncoderDecoderParts& parts, const ModelSetup& setup);

  LossOutput loss(const data::Batch& batch, const ForwardContext& context) override {
    return loss(batch, tensors_of(batch, context.training, device()), context);
  }
  LossOutput loss(const data::Batch& batch, const PairTensors& tensors,
                  const ForwardContext& context) override;
  PairTensors tensors_of(const data::Batch& batch, bool training,
                         c10::Device device) const override;
  std::unique_ptr<decoding::StepModel> start(const data::PackedTokens& src,
                                             int64_t lanes_per_src) override;
  std::unique_ptr<decoding::StreamModel> start_stream() override;
  std::vector<VocabularyTable> vocabulary_tables() const override;
  std::vector<optim::TiedName> tied_names() const override;
  text::SpecialIds target_specials() const override { return tgt_specials_; }
  int64_t max_target_length() const override { return decoder_->max_length(); }
  double operations(double src_length, double tgt_length) const override;
  std::vector<torch::Tensor> alignments(const data::Batch& batch, int64_t layer) override;

  c10::Device device() const { return head_->device(); }

 private:
  /// What the decoder attends to. @param rows  of `src`, once or twice
  Encoded encode(const nn::PackedRows& rows, const data::PackedTokens& src,
                 const ForwardContext& context);

  text::SpecialIds src_specials_, tgt_specials_;
  double src_word_dropout_, tgt_word_dropout_;
  bool ties_output_, output_bias_;
  nn::Embedding embedding_{nullptr};  ///< when all are tied
  SourceEncoders encoders_;
  std::shared_ptr<Decoder> decoder_;
  std::shared_ptr<Head> head_;
};

}  // namespace stretto::models
