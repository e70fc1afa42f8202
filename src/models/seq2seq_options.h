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
/// for each of `heads` (models/several_decoders.h). What Transformer layers are like, on either
/// side, is the LayerStyle.
struct Seq2SeqOptions : LayerStyle {
  using Inherited = LayerStyle;

  std::string name = "encoder_decoder";
  int64_t d_model = 512;
  EncoderChoice encoder;
  std::vector<EncoderChoice> encoders = {};  ///< two, in the place of `encoder`; empty = one source
  DecoderChoice decoder;
  std::vector<HeadOptions> heads;
  std::string tie_embeddings = "all";
  bool output_bias = false;
  std::string embedding_scale = "auto";
  std::vector<std::string> init;
  nn::LoraOptions lora;
  nn::AdapterOptions adapter;
  double src_word_dropout = 0.0;
  double tgt_word_dropout = 0.0;

  static auto fields() {
    using namespace config;
    using O = Seq2SeqOptions;
    const PartKeys parts{"encoder.name", "decoder.name"};
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
              "model.decoder alone")}
        .with(LayerStyle::layer_fields(parts))
        .with(Fields{
            field(&O::tie_embeddings, "tie_embeddings",
                  "which of source embedding, target embedding and output projection share one "
                  "matrix",
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
            field(
                &O::embedding_scale, "embedding_scale",
                "token vectors are multiplied by sqrt(d_model), by nothing, or (auto) by "
                "sqrt(d_model) in transformer, light_conv and dynamic_conv alone. A table that "
                "none of these reads and nothing multiplies starts N(0, 0.1) with conv, learned "
                "positions too, and as init_bound says with lstm. Others start N(0, d_model^-0.5)",
                one_of({"auto", "sqrt", "none"}))
                .also_called({"scale_embedding", "embed_scale", "scale_embeddings"},
                             "= \"sqrt\" for true, \"none\" for false")
                .also_called({"no_scale_embedding"}, "= \"none\"")
                .value_also_called("sqrt", {"true", "yes", "sqrt_d_model", "sqrt_dim"})
                .value_also_called("none", {"false", "no", "off"})})
        .with(LayerStyle::dropout_fields(parts))
        .with(Fields{
            nn::init_field(&O::init),
            field(&O::lora, "lora",
                  "low-rank adaptation: linear maps learn beside their weights, which stay")
                .also_called({"peft"}),
            field(&O::adapter, "adapter",
                  "bottleneck adapters: small layers learn behind the parts of all layers, which "
                  "stay")
                .also_called({"adapters", "bottleneck_adapter"}),
            field(&O::src_word_dropout, "src_word_dropout",
                  "probability that training zeroes the whole vector of a source token, before its "
                  "position is added; each occurrence for itself, the others are not scaled",
                  fraction())
                .also_called(
                    {"dropout_src", "dropout_source", "source_word_dropout", "word_dropout"}),
            field(&O::tgt_word_dropout, "tgt_word_dropout",
                  "the same of the target tokens that the decoder reads", fraction())
                .also_called({"dropout_trg", "dropout_target", "target_word_dropout"})});
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
