#include "models/encoder_decoder.h"

#include <torch/nn/modules/container/modulelist.h>

#include <utility>

#include "data/pairs/pair_columns.h"
#include "models/heads/token.h"
#include "models/join_memory.h"
#include "models/packed.h"
#include "models/split_sources.h"
#include "models/vocabulary_steps.h"
#include "models/vocabulary_streams.h"
#include "nn/lora.h"

namespace stretto::models {

nn::Embedding EncoderDecoderParts::output_table(const Decoder& decoder) const {
  if (!ties_output()) return nullptr;
  nn::Embedding table = decoder.embedding();
  TORCH_CHECK(table, "[model] tie_embeddings = \"", tie_embeddings,
              "\" needs a decoder with an embedding table; \"none\" needs none");
  return table;
}

nn::Init EncoderDecoderParts::root(const ModelSetup& setup) const {
  const nn::Init drawn =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  return drawn.with_rules(init).with_lora(lora).with_adapter(adapter);
}

nn::Embedding EncoderDecoderParts::joint_table(const nn::Init& root,
                                               const ModelSetup& setup) const {
  if (tie_embeddings != "all") return nullptr;
  return nn::Embedding(root.child("embedding"), setup.tgt_rows, d_model, setup.tgt_specials.pad,
                       rows_of_shared_table());
}

PartSetup EncoderDecoderParts::encoder_setup(const nn::Init& init, const ModelSetup& setup,
                                             const nn::Embedding& joint) const {
  return {.init = init,
          .d_model = d_model,
          .rows = setup.src_rows,
          .pad = setup.src_specials.pad,
          .embedding = joint,
          .embedding_scale = embedding_scale,
          .shared_rows = joint ? std::optional(rows_of_shared_table()) : std::nullopt,
          .first_site = kEncoderSites};
}

PartSetup EncoderDecoderParts::decoder_setup(const nn::Init& init, const ModelSetup& setup,
                                             const nn::Embedding& joint,
                                             int64_t memory_width) const {
  PartSetup part = encoder_setup(init, setup, joint);
  part.memory_width = memory_width;
  part.rows = setup.tgt_rows;
  part.pad = setup.tgt_specials.pad;
  part.first_site = kDecoderSites;
  return part;
}

SourceEncoders SourceEncoders::make(const EncoderDecoderParts& parts, const nn::Init& root,
                                    const ModelSetup& setup, const nn::Embedding& joint) {
  if (!parts.second_encoder) {
    return {.first = parts.encoder(parts.encoder_setup(root.child("encoder"), setup, joint)),
            .second = nullptr};
  }
  const nn::Init init = root.child("encoders");
  PartSetup part = parts.encoder_setup(init, setup, joint);
  const bool one_table = parts.tie_embeddings == "decoder";
  if (one_table) part.shared_rows = parts.rows_of_shared_table();
  SourceEncoders made;
  part.init = init.child("0");
  made.first = parts.encoder(part);
  part.init = init.child("1");
  part.first_site = kSecondEncoderSites;
  if (one_table) part.embedding = made.first->embedding();
  made.second = parts.second_encoder(part);
  TORCH_CHECK(made.first->width() == made.second->width(),
              "[model] both encoders must give rows of one width, got ", made.first->width(),
              " and ", made.second->width());
  return made;
}

void SourceEncoders::register_in(torch::nn::Module& model) const {
  if (!second) {
    model.register_module("encoder", first);
    return;
  }
  torch::nn::ModuleList both;
  both->push_back(first);
  both->push_back(second);
  model.register_module("encoders", both);
}

double SourceEncoders::operations(double length) const {
  if (!second) return first->operations(length);
  return (first->operations(length / 2) + second->operations(length / 2)) / 2;
}

bool SourceEncoders::share_table() const {
  if (!second) return false;
  const nn::Embedding one = first->embedding(), other = second->embedding();
  return one && other && one.get() == other.get();
}

std::vector<VocabularyTable> SourceEncoders::vocabulary_tables() const {
  if (!second) return {{"encoder.embedding.weight", /*of_source=*/true}};
  std::vector<VocabularyTable> tables{{"encoders.0.embedding.weight", /*of_source=*/true}};
  if (!share_table()) tables.push_back({"encoders.1.embedding.weight", /*of_source=*/true});
  return tables;
}

std::vector<optim::TiedName> SourceEncoders::tied_names(bool joint) const {
  if (joint && !second) return {{"encoder.embedding.weight", "embedding.weight"}};
  if (joint) {
    return {{"encoders.0.embedding.weight", "embedding.weight"},
            {"encoders.1.embedding.weight", "embedding.weight"}};
  }
  if (!share_table()) return {};
  return {{"encoders.1.embedding.weight", "encoders.0.embedding.weight"}};
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderParts& parts, const ModelSetup& setup,
                               nn::OutputLosses losses)
    : src_specials_(setup.src_specials),
      tgt_specials_(setup.tgt_specials),
      src_word_dropout_(parts.src_word_dropout),
      tgt_word_dropout_(parts.tgt_word_dropout),
      ties_output_(parts.ties_output()),
      output_bias_(parts.output_bias) {
  const nn::Init init = parts.root(setup);
  embedding_ = parts.joint_table(init, setup);
  if (embedding_) register_module("embedding", embedding_);
  encoders_ = SourceEncoders::make(parts, init, setup, embedding_);
  encoders_.register_in(*this);
  // Behind the encoder, whose rows it reads.
  decoder_ =
      register_module("decoder", parts.decoder(parts.decoder_setup(init.child("decoder"), setup,
                                                                   embedding_, encoders_.width())));
  head_ = register_module(
      "output", std::make_shared<TokenHead>(TokenHeadSetup{.init = init.child("output"),
                                                           .width = decoder_->width(),
                                                           .rows = setup.tgt_rows,
                                                           .num_classes = setup.num_tgt_classes,
                                                           .tied = parts.output_table(*decoder_),
                                                           .bias = parts.output_bias},
                                            std::move(losses)));
}

EncoderDecoder::EncoderDecoder(JoinedParts joined, const EncoderDecoderParts& parts,
                               const ModelSetup& setup)
    : src_specials_(setup.src_specials),
      tgt_specials_(setup.tgt_specials),
      src_word_dropout_(parts.src_word_dropout),
      tgt_word_dropout_(parts.tgt_word_dropout),
      ties_output_(parts.ties_output()),
      output_bias_(parts.output_bias) {
  if (joined.embedding) embedding_ = register_module("embedding", joined.embedding);
  encoders_ = std::move(joined.encoders);
  encoders_.register_in(*this);
  decoder_ = register_module("decoder", std::move(joined.decoder));
  head_ = register_module("output", std::move(joined.head));
}

Encoded EncoderDecoder::encode(const nn::PackedRows& rows, const data::PackedTokens& src,
                               const ForwardContext& context) {
  const auto run = [&](Encoder& encoder, const nn::PackedRows& read) {
    const nn::LoraDropoutScope scope(context.dropout(read.row_keys));
    return encoder.forward(read, context);
  };
  if (!encoders_.second) return run(*encoders_.first, rows);
  const SplitSources sources = split_sources(rows, src, src_specials_.eos);
  const Encoded first = run(*encoders_.first, sources.first);
  return join_memory(first, run(*encoders_.second, sources.second), rows.offsets.max_length);
}

PairTensors EncoderDecoder::tensors_of(const data::Batch& batch, bool training,
                                       c10::Device device) const {
  const bool twice = training && head_->learns_from_pairs();
  const auto packed = [&](const data::PackedTokens& tokens) {
    return twice ? pack_twice(tokens, batch.sample_ids, device)
                 : pack(tokens, training ? &batch.sample_ids : nullptr, device);
  };
  return {.src = packed(data::source(batch)),
          .tgt = packed(shift_right(data::target(batch), tgt_specials_.bos)),
          .targets = at::tensor(data::target(batch).values, at::kLong).to(device)};
}

LossOutput EncoderDecoder::loss(const data::Batch& batch, const PairTensors& tensors,
                                const ForwardContext& context) {
  const bool twice = context.training && head_->learns_from_pairs();
  const auto with_words_dropped = [&](const nn::PackedRows& rows, double p, uint64_t site) {
    return drop_words(rows, context.dropout(rows.row_keys), p, site + kWordSite);
  };
  const nn::PackedRows src = with_words_dropped(tensors.src, src_word_dropout_, kEncoderSites),
                       tgt = with_words_dropped(tensors.tgt, tgt_word_dropout_, kDecoderSites);

  const Encoded memory = encode(src, data::source(batch), context);
  const nn::LoraDropoutScope scope(context.dropout(tgt.row_keys));
  const at::Tensor x = decoder_->forward(tgt, memory, context);
  const kernels::CrossEntropy sums = head_->loss(x, {.labels = tensors.targets, .of_pairs = twice});
  return {.loss_sum = sums.loss_sum,
          .nll_sum = sums.nll_sum,
          .target_tokens = data::target(batch).num_rows(),
          .token_nll = sums.token_nll,
          .kl_sum = sums.kl_sum};
}

std::unique_ptr<decoding::StepModel> EncoderDecoder::start(const data::PackedTokens& src,
                                                           int64_t lanes_per_src) {
  const torch::NoGradGuard no_grad;
  const Encoded memory = encode(pack(src, nullptr, device()), src, {});
  return steps_of_vocabulary({.model = shared_from_this(),
                              .steps = decoder_->start(memory, lanes_per_src),
                              .head = head_,
                              .lanes = src.num_sequences() * lanes_per_src});
}

std::unique_ptr<decoding::StreamModel> EncoderDecoder::start_stream() {
  std::unique_ptr<StreamDecoder> steps = decoder_->start_stream();
  if (!steps) return nullptr;
  return streams_of_vocabulary({.model = shared_from_this(),
                                .encode =
                                    [this](const data::PackedTokens& src) {
                                      return encode(pack(src, nullptr, device()), src, {});
                                    },
                                .steps = std::move(steps),
                                .head = head_});
}

std::vector<VocabularyTable> EncoderDecoder::vocabulary_tables() const {
  std::vector<VocabularyTable> tables;
  if (output_bias_) tables.push_back({"output.bias"});
  if (embedding_) {
    tables.push_back({"embedding.weight"});
    return tables;
  }
  for (VocabularyTable& table : encoders_.vocabulary_tables()) tables.push_back(std::move(table));
  tables.push_back({"decoder.embedding.weight"});
  if (!ties_output_) tables.push_back({"output.weight"});
  return tables;
}

std::vector<optim::TiedName> EncoderDecoder::tied_names() const {
  if (!ties_output_) return {};
  std::vector<optim::TiedName> names = encoders_.tied_names(/*joint=*/!embedding_.is_empty());
  if (embedding_) names.push_back({"decoder.embedding.weight", "embedding.weight"});
  names.push_back({"output.weight", embedding_ ? "embedding.weight" : "decoder.embedding.weight"});
  return names;
}

double EncoderDecoder::operations(double src_length, double tgt_length) const {
  const double per_source = encoders_.operations(src_length) + decoder_->memory_operations();
  const double per_target = decoder_->operations(tgt_length, src_length) + head_->operations();
  return src_length * per_source + tgt_length * per_target;
}

std::vector<torch::Tensor> EncoderDecoder::alignments(const data::Batch& batch, int64_t layer) {
  const torch::NoGradGuard no_grad;
  const data::PackedTokens& src = data::source(batch);
  const Encoded memory = encode(pack(src, nullptr, device()), src, {});
  const data::PackedTokens before = shift_right(data::target(batch), tgt_specials_.bos);
  return decoder_->attention(pack(before, nullptr, device()), memory, layer);
}

}  // namespace stretto::models
