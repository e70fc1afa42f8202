#include "models/encoder_decoder.h"

#include <torch/nn/modules/container/modulelist.h>

#include <utility>

#include "data/pairs/pair_columns.h"
#include "models/heads/token.h"
#include "models/join_memory.h"
#include "models/packed.h"
#include "models/split_sources.h"
#include "nn/lora.h"

namespace stretto::models {
namespace {

/// The decoder's steps with the head behind them.
class StepsOfVocabulary : public decoding::StepModel {
 public:
  /// @param model  stays alive for as long as its parts are used
  StepsOfVocabulary(std::shared_ptr<torch::nn::Module> model, std::unique_ptr<StepDecoder> steps,
                    std::shared_ptr<Head> head, int64_t lanes)
      : model_(std::move(model)), steps_(std::move(steps)), head_(std::move(head)), lanes_(lanes) {}

  at::Tensor step(const at::Tensor& tokens) override {
    const torch::NoGradGuard no_grad;
    TORCH_CHECK(tokens.dim() == 1 && tokens.size(0) == lanes_, "[model] step: tokens must be [",
                lanes_, "], got ", tokens.sizes());
    return head_->log_probs(steps_->step(tokens.to(head_->device())));
  }

  void reorder(const std::vector<int64_t>& parents) override {
    const torch::NoGradGuard no_grad;
    steps_->reorder(parents);
    lanes_ = static_cast<int64_t>(parents.size());
  }

  int64_t vocab_size() const override { return head_->num_classes(); }

 private:
  std::shared_ptr<torch::nn::Module> model_;
  std::unique_ptr<StepDecoder> steps_;
  std::shared_ptr<Head> head_;
  int64_t lanes_;
};

}  // namespace

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
  if (parts.second_encoder) {
    make_two_encoders(parts, parts.encoder_setup(init.child("encoders"), setup, embedding_));
  } else {
    encoder_ = register_module(
        "encoder", parts.encoder(parts.encoder_setup(init.child("encoder"), setup, embedding_)));
  }
  // Behind the encoder, whose rows it reads.
  decoder_ =
      register_module("decoder", parts.decoder(parts.decoder_setup(init.child("decoder"), setup,
                                                                   embedding_, encoder_->width())));
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
  encoder_ = register_module("encoder", std::move(joined.encoder));
  decoder_ = register_module("decoder", std::move(joined.decoder));
  head_ = register_module("output", std::move(joined.head));
}

// `setup` stands at "encoders".
void EncoderDecoder::make_two_encoders(const EncoderDecoderParts& parts, PartSetup setup) {
  const nn::Init init = setup.init;
  const bool one_table = parts.tie_embeddings == "decoder";
  if (one_table) setup.shared_rows = parts.rows_of_shared_table();
  setup.init = init.child("0");
  encoder_ = parts.encoder(setup);
  setup.init = init.child("1");
  setup.first_site = kSecondEncoderSites;
  if (one_table) setup.embedding = encoder_->embedding();
  second_encoder_ = parts.second_encoder(setup);
  TORCH_CHECK(encoder_->width() == second_encoder_->width(),
              "[model] both encoders must give rows of one width, got ", encoder_->width(), " and ",
              second_encoder_->width());
  torch::nn::ModuleList encoders;
  encoders->push_back(encoder_);
  encoders->push_back(second_encoder_);
  register_module("encoders", encoders);
}

bool EncoderDecoder::share_source_table() const {
  const nn::Embedding first = encoder_->embedding(), second = second_encoder_->embedding();
  return first && second && first.get() == second.get();
}

Encoded EncoderDecoder::encode(const nn::PackedRows& rows, const data::PackedTokens& src,
                               const ForwardContext& context) {
  const auto run = [&](Encoder& encoder, const nn::PackedRows& read) {
    const nn::LoraDropoutScope scope(context.dropout(read.row_keys));
    return encoder.forward(read, context);
  };
  if (!second_encoder_) return run(*encoder_, rows);
  const SplitSources sources = split_sources(rows, src, src_specials_.eos);
  const Encoded first = run(*encoder_, sources.first);
  return join_memory(first, run(*second_encoder_, sources.second), rows.offsets.max_length);
}

LossOutput EncoderDecoder::loss(const data::Batch& batch, const ForwardContext& context) {
  const bool twice = context.training && head_->learns_from_pairs();
  const auto packed = [&](const data::PackedTokens& tokens, double word_dropout, uint64_t site) {
    const auto* sample_ids = context.training ? &batch.sample_ids : nullptr;
    nn::PackedRows rows =
        twice ? pack_twice(tokens, batch.sample_ids, device()) : pack(tokens, sample_ids, device());
    const nn::DropoutSource source = context.dropout(rows.row_keys);
    return drop_words(std::move(rows), source, word_dropout, site + kWordSite);
  };
  const nn::PackedRows src = packed(data::source(batch), src_word_dropout_, kEncoderSites),
                       tgt = packed(shift_right(data::target(batch), tgt_specials_.bos),
                                    tgt_word_dropout_, kDecoderSites);
  const at::Tensor targets = at::tensor(data::target(batch).values, at::kLong).to(device());

  const Encoded memory = encode(src, data::source(batch), context);
  const nn::LoraDropoutScope scope(context.dropout(tgt.row_keys));
  const at::Tensor x = decoder_->forward(tgt, memory, context);
  const kernels::CrossEntropy sums = head_->loss(x, {.labels = targets, .of_pairs = twice});
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
  return std::make_unique<StepsOfVocabulary>(shared_from_this(),
                                             decoder_->start(memory, lanes_per_src), head_,
                                             src.num_sequences() * lanes_per_src);
}

std::vector<VocabularyTable> EncoderDecoder::vocabulary_tables() const {
  std::vector<VocabularyTable> tables;
  if (output_bias_) tables.push_back({"output.bias"});
  if (embedding_) {
    tables.push_back({"embedding.weight"});
    return tables;
  }
  if (second_encoder_) {
    tables.push_back({"encoders.0.embedding.weight", /*of_source=*/true});
    if (!share_source_table()) {
      tables.push_back({"encoders.1.embedding.weight", /*of_source=*/true});
    }
  } else {
    tables.push_back({"encoder.embedding.weight", /*of_source=*/true});
  }
  tables.push_back({"decoder.embedding.weight"});
  if (!ties_output_) tables.push_back({"output.weight"});
  return tables;
}

std::vector<optim::TiedName> EncoderDecoder::tied_names() const {
  if (!ties_output_) return {};
  std::vector<optim::TiedName> names;
  if (!embedding_) {
    if (second_encoder_ && share_source_table()) {
      names.push_back({"encoders.1.embedding.weight", "encoders.0.embedding.weight"});
    }
    names.push_back({"output.weight", "decoder.embedding.weight"});
    return names;
  }
  const auto tied = [&](const char* name) { names.push_back({name, "embedding.weight"}); };
  if (second_encoder_) {
    tied("encoders.0.embedding.weight");
    tied("encoders.1.embedding.weight");
  } else {
    tied("encoder.embedding.weight");
  }
  tied("decoder.embedding.weight");
  tied("output.weight");
  return names;
}

double EncoderDecoder::operations(double src_length, double tgt_length) const {
  // Of two sources each is taken as half of the column.
  const double encoding =
      second_encoder_
          ? (encoder_->operations(src_length / 2) + second_encoder_->operations(src_length / 2)) / 2
          : encoder_->operations(src_length);
  const double per_source = encoding + decoder_->memory_operations();
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
