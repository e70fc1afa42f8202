#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/choice.h"
#include "config/field.h"
#include "models/convolution_options.h"
#include "models/embedding_options.h"
#include "models/light_convolution_options.h"
#include "models/recurrent_options.h"
#include "models/transformer_options.h"
#include "nn/adapter_options.h"
#include "nn/init_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// What may stand behind `model.encoder.name` and `model.decoder.name`; the first is the default.
using EncoderChoice = config::Choice<StackOptions, LstmEncoderOptions, ConvEncoderOptions,
                                     LightEncoderOptions, DynamicEncoderOptions>;
using DecoderChoice = config::Choice<StackOptions, LstmDecoderOptions, ConvDecoderOptions,
                                     LightDecoderOptions, DynamicDecoderOptions>;

/// The declaration of a part, with what its names are called elsewhere.
template <class Declared>
Declared with_names_elsewhere(Declared part) {
  return std::move(part)
      .value_also_called("transformer", {"self_attention", "vaswani", "transformer_base"})
      .value_also_called("lstm", {"rnn", "gnmt", "recurrent", "birnn", "bilstm", "s2s", "nematus"})
      .value_also_called("lstm", {"gru"}, "with cell = \"gru\"")
      .value_also_called("conv", {"convs2s", "fconv", "cnn", "convolution", "convolutional"})
      .value_also_called("light_conv", {"light_convolution", "lightweight_conv"})
      .value_also_called("dynamic_conv", {"dynamic_convolution"});
}

/// `[[model.heads]]`: one of several decoders behind one encoder, for outputs of its own kind.
struct HeadOptions {
  std::string name;
  double weight = 1;
  DecoderChoice decoder;

  static auto fields() {
    using namespace config;
    using O = HeadOptions;
    return Fields{
        field(&O::name, "name",
              "what commands, scores and data.heads call it: letters, digits, `_` and `-`"),
        field(&O::weight, "weight",
              "what its loss, the mean over its target tokens of an update, is multiplied by",
              greater(0))
            .also_called({"loss_weight", "task_weight"}),
        with_names_elsewhere(
            field(&O::decoder, "decoder", "what writes its target, as model.decoder")),
    };
  }
};

/// `[model]`: an encoder and a decoder that attends to it; or two encoders, one for each of two
/// sources, of which the decoder attends to both (models/join_memory.h); or several decoders, one
/// for each of `heads` (models/several_decoders.h). Keys from `norm` on, but for those of
/// embeddings, `init` and word dropout, are those of Transformer layers (Vaswani et al. 2017), on
/// either side.
struct Seq2SeqOptions {
  std::string name = "encoder_decoder";
  int64_t d_model = 512;
  EncoderChoice encoder;
  std::vector<EncoderChoice> encoders = {};  ///< two, in the place of `encoder`; empty = one source
  DecoderChoice decoder;
  std::vector<HeadOptions> heads;
  std::string norm = "post";
  std::string norm_layer = "layer_norm";
  bool parallel_residual = false;
  bool zero_gamma = false;
  bool output_bias = false;
  std::string activation = "relu";
  std::string positions = "sinusoidal";
  int64_t max_positions = 1024;
  int64_t max_distance = 16;
  std::string tie_embeddings = "all";
  std::string embedding_scale = "auto";
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;
  std::vector<std::string> init;
  nn::LoraOptions lora;
  nn::AdapterOptions adapter;
  double src_word_dropout = 0.0;
  double tgt_word_dropout = 0.0;

  static auto fields() {
    using namespace config;
    using O = Seq2SeqOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::name, "name", "how its parts are joined", one_of({"encoder_decoder"}))
            .also_called({"arch", "architecture", "type", "model_type"})
            .value_formerly("encoder_decoder", "transformer")
            .value_also_called("encoder_decoder",
                               {"transformer_base", "transformer_big", "transformer_wmt_en_de",
                                "transformer_vaswani_wmt_en_de_big", "transformer_iwslt_de_en"},
                               "its parts are transformers, and its sizes keys of [model]")
            .value_also_called("encoder_decoder", {"marian", "seq2seq", "s2s"})
            .value_also_called("encoder_decoder",
                               {"lstm", "rnn", "gnmt", "conv", "fconv", "convs2s", "lightconv"},
                               "model.encoder.name and model.decoder.name choose the parts"),
        field(&O::d_model, "d_model",
              "width of token embeddings and of hidden states, unless a part sets its own "
              "(hidden_dim, channels)",
              between(2, 65536))
            .also_called({"dim", "dim_model", "model_dim", "embed_dim", "encoder_embed_dim",
                          "decoder_embed_dim", "emb_size", "embedding_dim", "dim_emb",
                          "hidden_size", "rnn_size", "word_vec_size", "word_vec_dim",
                          "embedding_size", "width"}),
        with_names_elsewhere(field(&O::encoder, "encoder", "what reads the source")),
        with_names_elsewhere(
            field(&O::encoders, "encoders",
                  "what reads two sources: two encoders in the place of model.encoder, the first "
                  "for data.train_src, the second for data.train_src2")),
        with_names_elsewhere(field(&O::decoder, "decoder", "what writes the target")),
        field(&O::heads, "heads",
              "several decoders behind the encoder, each with its data in data.heads; empty = "
              "model.decoder alone"),
        field(&O::norm, "norm",
              "where each part is normalised: after the residual sum (Vaswani 2017), before the "
              "part, or its output before the sum (Swin v2)",
              one_of({"post", "pre", "res_post"}), hidden)
            .also_called({"encoder_normalize_before", "decoder_normalize_before",
                          "normalize_before", "norm_first", "pre_norm"},
                         "= \"pre\"")
            .also_called({"transformer_preprocess"}, "= \"pre\" for Marian's \"n\"")
            .also_called({"transformer_postprocess"}, "= \"post\" for Marian's \"dan\"")
            .also_called({"norm_position"})
            .value_also_called("post", {"postnorm", "post_norm", "post_ln", "after"})
            .value_also_called("pre", {"prenorm", "pre_norm", "pre_ln", "before"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::norm_layer, "norm_layer",
              "over the width of each token (rms_norm: without a mean and without a bias), or each "
              "channel over all tokens of a micro-batch (see dist.batch_norm)",
              one_of({"layer_norm", "rms_norm", "batch_norm"}), hidden)
            .also_called({"norm_type", "layer_norm_type", "normalization"})
            .value_also_called("layer_norm", {"ln", "standard", "layer"})
            .value_also_called("rms_norm", {"rms", "rmsnorm", "t5_layer_norm"})
            .value_also_called("batch_norm", {"bn", "batch"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::parallel_residual, "parallel_residual",
              "all parts of a layer read the same normed rows and are added at once (GPT-J, PaLM); "
              "for norm = \"pre\"",
              any(), hidden)
            .also_called(
                {"use_parallel_residual", "parallel_attn", "parallel_block", "parallel_layers"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::zero_gamma, "zero_gamma",
              "norms start with a gain of 0, so that each part adds nothing at first; for norm = "
              "\"res_post\"",
              any())
            .also_called({"zero_init_residual", "zero_init_gamma", "zero_gain"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::activation, "activation",
              "of the feed-forward part: gelu_tanh is GELU's approximation by tanh, silu is also "
              "called swish; swiglu has a third matrix",
              one_of({"relu", "gelu", "swiglu", "gelu_tanh", "silu"}), hidden)
            .also_called({"activation_fn", "activation_function", "pos_ffn_activation_fn",
                          "hidden_act", "transformer_ffn_activation"})
            .value_also_called("gelu_tanh", {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"})
            .value_also_called("silu", {"swish"})
            .value_also_called("swiglu", {"silu_gated", "gated_silu", "swish_gated"})
            .value_also_called("relu", {"rectifier"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::positions, "positions",
              "how a token knows its place. Vectors added to embeddings: sinusoidal (fairseq's "
              "table), marian (Marian's table of sinusoids), learned. Queries and keys turned: "
              "rotary. A bias of distances in self-attention: alibi, t5. Vectors of distances "
              "added to its keys: shaw",
              one_of({"sinusoidal", "learned", "rotary", "alibi", "t5", "shaw", "marian"}), hidden)
            .also_called({"position_encoding", "positional_encoding", "position_embeddings",
                          "position_embedding_type"})
            .also_called(
                {"encoder_learned_pos", "decoder_learned_pos", "transformer_train_positions"},
                "= \"learned\"")
            .also_called({"rope"}, "= \"rotary\"")
            .also_called({"use_alibi", "alibi_bias"}, "= \"alibi\"")
            .also_called({"relative_attention_num_buckets", "relative_positions_buckets"},
                         "= \"t5\", which has 32")
            .value_also_called("sinusoidal", {"sin", "sinusoid", "fixed"})
            .value_also_called("learned", {"absolute", "embedding", "trained"})
            .value_also_called("rotary", {"rope", "rotary_embedding"})
            .value_also_called("alibi", {"linear_bias", "linear_biases"})
            .value_also_called("t5", {"relative_bias", "relative_attention_bias", "bucketed"})
            .value_also_called("shaw", {"relative_key", "relative_keys", "relative_positions"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::max_positions, "max_positions",
              "longest sequence of learned positions; of sinusoidal and marian: that of a model "
              "that `stretto export` writes",
              between(1, 1000000), {.unit = "tokens"})
            .also_called({"max_position_embeddings", "n_positions"})
            .read_with("positions", {"learned", "sinusoidal", "marian"}),
        field(&O::max_distance, "max_distance",
              "of shaw: distances beyond it share the vector of the farthest", between(1, 4096),
              {.unit = "tokens"})
            .also_called({"max_relative_positions", "max_relative_position"})
            .read_with("positions", {"shaw"}),
        field(&O::tie_embeddings, "tie_embeddings",
              "which of source embedding, target embedding and output projection share one matrix",
              one_of({"all", "decoder", "none"}))
            .also_called({"share_all_embeddings", "share_embeddings", "tied_embeddings",
                          "tied_embeddings_all", "tie_word_embeddings", "tie_weights"})
            .also_called({"share_decoder_input_output_embed", "share_decoder_embeddings"},
                         "= \"decoder\"")
            .value_also_called("all", {"true", "yes", "shared", "share_all"})
            .value_also_called("none", {"false", "no"})
            .value_also_called("decoder", {"target", "tgt"}),
        field(&O::output_bias, "output_bias",
              "whether the output projection adds a learned number for each token of the "
              "vocabulary, as Marian's does; starts at zero")
            .also_called({"final_logits_bias", "logits_bias", "output_projection_bias"}),
        field(&O::embedding_scale, "embedding_scale",
              "token vectors are multiplied by sqrt(d_model), by nothing, or (auto) by "
              "sqrt(d_model) in transformer, light_conv and dynamic_conv alone. A table that "
              "none of these reads and nothing multiplies starts N(0, 0.1) with conv, learned "
              "positions too, and as init_bound says with lstm. Others start N(0, d_model^-0.5)",
              one_of({"auto", "sqrt", "none"}))
            .also_called({"scale_embedding", "embed_scale", "scale_embeddings"},
                         "= \"sqrt\" for true, \"none\" for false")
            .also_called({"no_scale_embedding"}, "= \"none\"")
            .value_also_called("sqrt", {"true", "yes", "sqrt_d_model", "sqrt_dim"})
            .value_also_called("none", {"false", "no", "off"}),
        field(&O::dropout, "dropout", "on embeddings and each part's output", fraction())
            .also_called({"dropout_rate", "hidden_dropout", "resid_dropout", "transformer_dropout",
                          "residual_dropout", "hidden_dropout_prob"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
            .also_called(
                {"attn_dropout", "transformer_dropout_attention", "attention_probs_dropout_prob"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction())
            .also_called({"relu_dropout", "ffn_dropout", "transformer_dropout_ffn"})
            .read_with("encoder.name", {"transformer"})
            .read_with("decoder.name", {"transformer"}),
        nn::init_field(&O::init),
        field(&O::lora, "lora",
              "low-rank adaptation: linear maps learn beside their weights, which stay")
            .also_called({"peft"}),
        field(&O::adapter, "adapter",
              "bottleneck adapters: small layers learn behind the parts of all layers, which stay")
            .also_called({"adapters", "bottleneck_adapter"}),
        field(&O::src_word_dropout, "src_word_dropout",
              "probability that training zeroes the whole vector of a source token, before its "
              "position is added; each occurrence for itself, the others are not scaled",
              fraction())
            .also_called({"dropout_src", "dropout_source", "source_word_dropout", "word_dropout"}),
        field(&O::tgt_word_dropout, "tgt_word_dropout",
              "the same of the target tokens that the decoder reads", fraction())
            .also_called({"dropout_trg", "dropout_target", "target_word_dropout"}),
    };
  }
};

/// Whether the model reads two sources.
inline bool has_two_encoders(const Seq2SeqOptions& options) {
  return options.encoders.size() == 2;
}

/// One for each source.
inline size_t num_encoders(const Seq2SeqOptions& options) {
  return std::max<size_t>(options.encoders.size(), 1);
}

/// The encoder of the first source, or of the only one.
inline const EncoderChoice& first_encoder(const Seq2SeqOptions& options) {
  return options.encoders.empty() ? options.encoder : options.encoders.front();
}

/// use(encoder, its section) for each: "model.encoder", or "model.encoders.0" and so on.
template <class Use>
void each_encoder(const Seq2SeqOptions& options, const Use& use) {
  if (options.encoders.empty()) return use(options.encoder, std::string("model.encoder"));
  for (size_t i = 0; i < options.encoders.size(); ++i) {
    use(options.encoders[i], "model.encoders." + std::to_string(i));
  }
}

/// The model with the decoder of this head as its only one.
inline Seq2SeqOptions model_of_head(const Seq2SeqOptions& options, size_t head) {
  Seq2SeqOptions one = options;
  one.decoder = options.heads.at(head).decoder;
  one.heads.clear();
  return one;
}

/// The section of a decoder: that of a head, or of the only one where there are no heads.
inline std::string decoder_section(const Seq2SeqOptions& options, size_t head = 0) {
  if (options.heads.empty()) return "model.decoder";
  return "model.heads." + std::to_string(head) + ".decoder";
}

/// All decoders: those of the heads, or the only one.
inline std::vector<const DecoderChoice*> decoders_of(const Seq2SeqOptions& options) {
  if (options.heads.empty()) return {&options.decoder};
  std::vector<const DecoderChoice*> decoders;
  for (const HeadOptions& head : options.heads) decoders.push_back(&head.decoder);
  return decoders;
}

/// Whether any decoder is of this kind.
template <class Options>
bool has_decoder(const Seq2SeqOptions& options) {
  for (const DecoderChoice* decoder : decoders_of(options)) {
    if (decoder->template is<Options>()) return true;
  }
  return false;
}

/// How parts embed tokens: of each encoder, then of each decoder.
inline std::vector<EmbeddingKind> embedding_kinds(const Seq2SeqOptions& options) {
  const auto of = [](const auto& part) { return embedding_kind(part); };
  std::vector<EmbeddingKind> kinds;
  each_encoder(options, [&](const EncoderChoice& encoder, const std::string& /*section*/) {
    kinds.push_back(encoder.visit(of));
  });
  for (const DecoderChoice* decoder : decoders_of(options)) kinds.push_back(decoder->visit(of));
  return kinds;
}

/// Whether the parts of every side multiply their token vectors.
inline bool all_scale_embeddings(const Seq2SeqOptions& options) {
  const auto kinds = embedding_kinds(options);
  return std::all_of(kinds.begin(), kinds.end(), [&](const EmbeddingKind& kind) {
    return kind.scales(options.embedding_scale);
  });
}

/// How the rows of the table start that several parts look up: with `tie_embeddings` "all" that of
/// every part, else that of two encoders.
inline nn::InitRule rows_of_shared_table(const Seq2SeqOptions& options) {
  std::vector<EmbeddingKind> kinds = embedding_kinds(options);
  if (options.tie_embeddings != "all") kinds.resize(kinds.size() - decoders_of(options).size());
  return shared_rows(kinds, options.embedding_scale, options.d_model);
}

/// Whether any of its parts has Transformer layers.
inline bool has_transformer(const Seq2SeqOptions& options) {
  bool any = has_decoder<StackOptions>(options);
  each_encoder(options, [&](const EncoderChoice& encoder, const std::string& /*section*/) {
    any = any || encoder.is<StackOptions>();
  });
  return any;
}

/// Layers of the decoder, whichever it is; of several the most.
inline int64_t decoder_layers(const Seq2SeqOptions& options) {
  int64_t most = 0;
  for (const DecoderChoice* decoder : decoders_of(options)) {
    most = std::max(most, decoder->visit([](const auto& part) { return part.num_layers; }));
  }
  return most;
}

/// Width of the decoder's rows, which the output projection reads; of several that of the first.
inline int64_t output_width(const Seq2SeqOptions& options) {
  return decoders_of(options).front()->visit([&](const auto& part) {
    if constexpr (requires { part.output_width(options.d_model); }) {
      return part.output_width(options.d_model);
    } else {
      return options.d_model;
    }
  });
}

/// Whether each part of a Transformer's layer ends in a norm before it is added to the residual
/// stream: with a gain of 0 the part then adds nothing.
inline bool parts_end_in_norm(const Seq2SeqOptions& options) {
  return has_transformer(options) && options.norm == "res_post";
}

/// Whether every norm stands in front of its part, or there is none that could stand elsewhere.
inline bool norms_come_first(const Seq2SeqOptions& options) {
  const auto of = [&](const auto& part) {
    if constexpr (requires { part.norm; }) return part.norm == "pre";
    return !std::is_same_v<std::decay_t<decltype(part)>, StackOptions> || options.norm == "pre";
  };
  bool all = true;
  for (const DecoderChoice* decoder : decoders_of(options)) all = all && decoder->visit(of);
  each_encoder(options, [&](const EncoderChoice& encoder, const std::string& /*section*/) {
    all = all && encoder.visit(of);
  });
  return all;
}

/// Whether norms see all tokens of a micro-batch, so that samples are not independent.
inline bool has_batch_norm(const Seq2SeqOptions& options) {
  return has_transformer(options) && options.norm_layer == "batch_norm";
}

/// The fewest learned positions of a model, and the key that says how many; `key` is empty when
/// sequences may have any length.
struct LearnedPositions {
  int64_t tokens = std::numeric_limits<int64_t>::max();
  std::string key, choice;
};
inline LearnedPositions learned_positions(const Seq2SeqOptions& options) {
  LearnedPositions fewest;
  const auto look = [&](const auto& at, const std::string& section) {
    if (at.positions != "learned" || at.max_positions >= fewest.tokens) return;
    fewest = {at.max_positions, section + ".max_positions", section + ".positions"};
  };
  if (has_transformer(options)) look(options, "model");
  each_encoder(options, [&](const EncoderChoice& encoder, const std::string& section) {
    encoder.visit([&](const auto& part) {
      if constexpr (requires { part.max_positions; }) look(part, section);
    });
  });
  const auto decoders = decoders_of(options);
  for (size_t head = 0; head < decoders.size(); ++head) {
    decoders[head]->visit([&](const auto& part) {
      if constexpr (requires { part.max_positions; }) look(part, decoder_section(options, head));
    });
  }
  return fewest;
}

}  // namespace stretto::models
