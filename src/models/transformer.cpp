#include "models/transformer.h"

#include "models/packed.h"
#include "models/transformer_decoding.h"
#include "nn/batch_norm.h"
#include "nn/watch.h"
#include "text/tokenizer.h"

namespace stretto::models {
namespace {

// Sites of dropout: each stack has its own range, each layer kPlaces of it. Changing these numbers
// changes every mask, and with it every run.
constexpr uint64_t kEncoderSites = 1'000'000, kDecoderSites = 2'000'000, kEmbeddingSite = 999'999;

uint64_t layer_site(uint64_t stack, size_t layer) {
  return stack + layer * uint64_t{LayerDropout::kPlaces};
}

nn::AttentionOptions self_options(const TransformerOptions& options, const StackOptions& stack) {
  return {.d_model = options.d_model,
          .num_heads = stack.num_heads,
          .rotary = options.positions == "rotary"};
}

nn::FeedForward feed_forward(const nn::Init& init, const TransformerOptions& options,
                             const StackOptions& stack) {
  return nn::FeedForward(init.child("ffn"), options.d_model, stack.ffn_dim, options.activation);
}

/// Registers `count` layers below `parent` as layers.0, layers.1, …
template <class Layer>
std::vector<Layer> make_layers(torch::nn::Module& parent, const nn::Init& init,
                               const TransformerOptions& options, int64_t count) {
  std::vector<Layer> layers;
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < count; ++i) {
    layers.push_back(Layer(init.child("layers").child(std::to_string(i)), options));
    list->push_back(layers.back());
  }
  parent.register_module("layers", list);
  return layers;
}

}  // namespace

std::shared_ptr<nn::NormImpl> make_norm(const nn::Init& init, const TransformerOptions& options,
                                        bool zero_gamma) {
  if (options.norm_layer == "batch_norm") {
    const nn::BatchNormOptions batch{.momentum = 0.05, .epsilon = 1e-4, .zero_gamma = zero_gamma};
    return std::make_shared<nn::BatchNormImpl>(init, options.d_model, batch);
  }
  return std::make_shared<nn::LayerNormImpl>(init, options.d_model, zero_gamma);
}

ResidualImpl::ResidualImpl(const nn::Init& init, const TransformerOptions& options)
    : place_(options.norm == "pre"        ? Place::kPre
             : options.norm == "res_post" ? Place::kResPost
                                          : Place::kPost) {
  norm = register_module("norm", make_norm(init.child("norm"), options, options.zero_gamma));
}

EncoderLayerImpl::EncoderLayerImpl(const nn::Init& init, const TransformerOptions& options) {
  self_attention = register_module(
      "self_attention",
      nn::SelfAttention(init.child("self_attention"), self_options(options, options.encoder)));
  ffn = register_module("ffn", feed_forward(init, options, options.encoder));
  self_residual = register_module("self_residual", Residual(init.child("self_residual"), options));
  ffn_residual = register_module("ffn_residual", Residual(init.child("ffn_residual"), options));
}

at::Tensor EncoderLayerImpl::forward(at::Tensor x, const nn::PackedRows& src,
                                     const LayerDropout& dropout) const {
  using D = LayerDropout;
  const TransformerOptions& o = dropout.options;
  x = self_residual->forward(x, dropout.at(o.dropout, D::kSelf), [&](const at::Tensor& h) {
    return self_attention->forward(h, src, false, dropout.at(o.attention_dropout, D::kSelfWeights));
  });
  return ffn_residual->forward(x, dropout.at(o.dropout, D::kFfn), [&](const at::Tensor& h) {
    return ffn->forward(h, dropout.at(o.activation_dropout, D::kFfnInner));
  });
}

DecoderLayerImpl::DecoderLayerImpl(const nn::Init& init, const TransformerOptions& options) {
  const nn::AttentionOptions attention = self_options(options, options.decoder);
  self_attention =
      register_module("self_attention", nn::SelfAttention(init.child("self_attention"), attention));
  cross_attention = register_module("cross_attention",
                                    nn::CrossAttention(init.child("cross_attention"), attention));
  ffn = register_module("ffn", feed_forward(init, options, options.decoder));
  self_residual = register_module("self_residual", Residual(init.child("self_residual"), options));
  cross_residual =
      register_module("cross_residual", Residual(init.child("cross_residual"), options));
  ffn_residual = register_module("ffn_residual", Residual(init.child("ffn_residual"), options));
}

at::Tensor DecoderLayerImpl::forward(at::Tensor x, const DecoderAttention& attention,
                                     const LayerDropout& dropout) const {
  using D = LayerDropout;
  const TransformerOptions& o = dropout.options;
  x = self_residual->forward(x, dropout.at(o.dropout, D::kSelf), attention.self);
  x = cross_residual->forward(x, dropout.at(o.dropout, D::kCross), attention.cross);
  return ffn_residual->forward(x, dropout.at(o.dropout, D::kFfn), [&](const at::Tensor& h) {
    return ffn->forward(h, dropout.at(o.activation_dropout, D::kFfnInner));
  });
}

StackImpl::StackImpl(const nn::Init& init, const TransformerOptions& options, int64_t rows,
                     nn::Embedding shared) {
  // A shared table is registered by its owner alone, so that it has one name.
  embedding = shared ? shared
                     : register_module("embedding", nn::Embedding(init.child("embedding"), rows,
                                                                  options.d_model, text::kPad));
  positions = register_module("positions", nn::Positions(init.child("positions"), options.positions,
                                                         options.d_model, options.max_positions));
  if (options.norm != "post") {
    final_norm = register_module("final_norm", make_norm(init.child("final_norm"), options, false));
  }
}

at::Tensor StackImpl::embed(const at::Tensor& ids, const at::Tensor& places, int64_t max_length,
                            const kernels::Dropout& dropout) {
  const at::Tensor position = positions->forward(places, max_length, embedding->weight);
  return kernels::dropout(embedding->forward(ids, position), dropout);
}

at::Tensor StackImpl::finish(const at::Tensor& x) const {
  return final_norm ? final_norm->forward(x) : x;
}

EncoderImpl::EncoderImpl(const nn::Init& init, const TransformerOptions& options, int64_t rows,
                         nn::Embedding shared)
    : StackImpl(init, options, rows, shared),
      layers(make_layers<EncoderLayer>(*this, init, options, options.encoder.num_layers)) {}

at::Tensor EncoderImpl::forward(const nn::PackedRows& src, const TransformerOptions& options,
                                const nn::DropoutSource& dropout) {
  at::Tensor x = embed(src.ids, src.positions, src.offsets.max_length,
                       dropout.at(options.dropout, kEncoderSites + kEmbeddingSite));
  for (size_t i = 0; i < layers.size(); ++i) {
    x = layers[i]->forward(x, src, {options, dropout, layer_site(kEncoderSites, i)});
  }
  return finish(x);
}

DecoderImpl::DecoderImpl(const nn::Init& init, const TransformerOptions& options, int64_t rows,
                         nn::Embedding shared)
    : StackImpl(init, options, rows, shared),
      layers(make_layers<DecoderLayer>(*this, init, options, options.decoder.num_layers)) {}

at::Tensor DecoderImpl::forward(const nn::PackedRows& tgt, const at::Tensor& memory,
                                const nn::PackedRows& src, const TransformerOptions& options,
                                const nn::DropoutSource& dropout, const Observer& observe) {
  at::Tensor x = embed(tgt.ids, tgt.positions, tgt.offsets.max_length,
                       dropout.at(options.dropout, kDecoderSites + kEmbeddingSite));
  for (size_t i = 0; i < layers.size(); ++i) {
    const DecoderLayerImpl& layer = *layers[i];
    const LayerDropout drops{options, dropout, layer_site(kDecoderSites, i)};
    const double p = options.attention_dropout;
    const auto self = [&](const at::Tensor& h) {
      return layer.self_attention->forward(h, tgt, true, drops.at(p, LayerDropout::kSelfWeights));
    };
    const auto cross = [&](const at::Tensor& h) {
      const at::Tensor q = layer.cross_attention->q->forward(h);
      const at::Tensor kv = layer.cross_attention->kv->forward(memory);
      if (observe) observe(static_cast<int64_t>(i), q, kv);
      const at::Tensor attended =
          kernels::cross_attention(q, kv,
                                   {.query_offsets = tgt.offsets,
                                    .key_offsets = src.offsets,
                                    .num_heads = options.decoder.num_heads,
                                    .dropout = drops.at(p, LayerDropout::kCrossWeights)});
      return layer.cross_attention->out->forward(nn::watch(*layer.cross_attention, attended));
    };
    x = layer.forward(x, {.self = self, .cross = cross}, drops);
  }
  return finish(x);
}

Transformer::Transformer(const TransformerOptions& options, const ModelSetup& setup,
                         nn::OutputLoss loss)
    : options_(options), num_classes_(setup.num_tgt_classes), loss_(std::move(loss)) {
  const nn::Init init =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  const int64_t d = options_.d_model;
  if (options_.tie_embeddings == "all") {
    embedding_ = register_module(
        "embedding", nn::Embedding(init.child("embedding"), setup.tgt_rows, d, text::kPad));
  }
  encoder = register_module("encoder",
                            Encoder(init.child("encoder"), options_, setup.src_rows, embedding_));
  decoder = register_module("decoder",
                            Decoder(init.child("decoder"), options_, setup.tgt_rows, embedding_));
  if (options_.tie_embeddings == "none") {
    output_ = register_module("output", nn::Embedding(init.child("output"), setup.tgt_rows, d, -1));
  }
}

const at::Tensor& Transformer::output_weight() const {
  return output_ ? output_->weight : decoder->embedding->weight;
}

LossOutput Transformer::loss(const data::Batch& batch, const ForwardContext& context) {
  TORCH_CHECK(loss_, "[transformer] was built without a loss");
  const auto* sample_ids = context.training ? &batch.sample_ids : nullptr;
  const nn::PackedRows src = pack(batch.src, sample_ids, device());
  const nn::PackedRows tgt = pack(shift_right(batch.tgt), sample_ids, device());
  const at::Tensor targets = at::tensor(batch.tgt.ids, at::kLong).to(device());

  const at::Tensor memory =
      encoder->forward(src, options_, {context.training, context.dropout_key, src.row_keys});
  const at::Tensor x = decoder->forward(tgt, memory, src, options_,
                                        {context.training, context.dropout_key, tgt.row_keys});
  // Named as if it were never tied, since a tied table's gradient also holds that of its lookups.
  const at::Tensor weight = nn::watch_use("output.weight", output_weight());
  const kernels::CrossEntropy sums = loss_(x, weight, targets, num_classes_);
  return {.loss_sum = sums.loss_sum,
          .nll_sum = sums.nll_sum,
          .target_tokens = batch.tgt.num_tokens(),
          .token_nll = sums.token_nll};
}

std::unique_ptr<decoding::StepModel> Transformer::start(const data::PackedTokens& src,
                                                        int64_t lanes_per_src) {
  auto self = std::dynamic_pointer_cast<Transformer>(shared_from_this());
  return std::make_unique<TransformerStepModel>(std::move(self), src, lanes_per_src);
}

std::vector<VocabularyTable> Transformer::vocabulary_tables() const {
  if (embedding_) return {{"embedding.weight"}};
  std::vector<VocabularyTable> tables{{"encoder.embedding.weight", /*of_source=*/true},
                                      {"decoder.embedding.weight"}};
  if (output_) tables.push_back({"output.weight"});
  return tables;
}

int64_t Transformer::max_target_length() const {
  return options_.positions == "learned" ? options_.max_positions
                                         : Seq2SeqModel::max_target_length();
}

std::vector<torch::Tensor> Transformer::alignments(const data::Batch& batch, int64_t layer) {
  const torch::NoGradGuard no_grad;
  const auto num_layers = static_cast<int64_t>(decoder->layers.size());
  TORCH_CHECK(layer >= -1 && layer < num_layers, "[transformer] alignment layer ", layer,
              " of a decoder of ", num_layers, " layers; set decode.alignment_layer");
  const int64_t wanted = layer < 0 ? num_layers - 1 : layer;
  const nn::PackedRows src = pack(batch.src, nullptr, device());
  const nn::PackedRows tgt = pack(shift_right(batch.tgt), nullptr, device());

  at::Tensor weights;
  const auto observe = [&](int64_t at_layer, const at::Tensor& q, const at::Tensor& kv) {
    if (at_layer != wanted) return;
    weights = kernels::cross_attention_weights(q, kv,
                                               {.query_offsets = tgt.offsets,
                                                .key_offsets = src.offsets,
                                                .num_heads = options_.decoder.num_heads,
                                                .dropout = {}});
  };
  decoder->forward(tgt, encoder->forward(src, options_, {}), src, options_, {}, observe);

  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    sizes.push_back(batch.tgt.length(i) * batch.src.length(i));
  }
  std::vector<torch::Tensor> blocks = weights.split_with_sizes(sizes);
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    blocks[i] = blocks[i].view({batch.tgt.length(i), batch.src.length(i)});
  }
  return blocks;
}

}  // namespace stretto::models
