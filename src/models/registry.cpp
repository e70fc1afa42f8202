#include "models/registry.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/decoders/convolution.h"
#include "models/decoders/light_convolution.h"
#include "models/decoders/recurrent.h"
#include "models/decoders/transformer.h"
#include "models/encoder_decoder.h"
#include "models/encoders/convolution.h"
#include "models/encoders/light_convolution.h"
#include "models/encoders/recurrent.h"
#include "models/encoders/transformer.h"
#include "models/option_conflicts.h"
#include "models/several_decoders.h"

namespace stretto::models {
namespace {

void require(bool holds, const std::string& what, const std::string& advice) {
  if (!holds) throw Error(ExitCode::kUsage, what, advice);
}

std::vector<nn::InitRule> init_rules_of(const Seq2SeqOptions& options) {
  std::vector<nn::InitRule> rules(options.init.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto problem = nn::read_init_rule(options.init[i], rules[i]);
    if (problem) require(false, "model.init: " + problem->what, problem->hint);
  }
  return rules;
}

/// Builds the chosen parts: one overload for each of them, and a forgotten one does not compile.
struct MakeEncoder {
  const LayerStyle& style;
  const PartSetup& setup;
  int64_t num_attentions;

  std::shared_ptr<Encoder> operator()(const StackOptions& stack) const {
    return std::make_shared<TransformerEncoder>(TransformerPart(style, stack), setup);
  }
  std::shared_ptr<Encoder> operator()(const LstmEncoderOptions& options) const {
    return make_lstm_encoder(options, setup);
  }
  std::shared_ptr<Encoder> operator()(const ConvEncoderOptions& options) const {
    return make_conv_encoder(options, setup, num_attentions);
  }
  std::shared_ptr<Encoder> operator()(const LightEncoderOptions& options) const {
    return make_light_encoder(options, setup);
  }
  std::shared_ptr<Encoder> operator()(const DynamicEncoderOptions& options) const {
    return make_dynamic_encoder(options, setup);
  }
};

struct MakeDecoder {
  const LayerStyle& style;
  const PartSetup& setup;

  std::shared_ptr<Decoder> operator()(const StackOptions& stack) const {
    return std::make_shared<TransformerDecoder>(TransformerPart(style, stack), setup);
  }
  std::shared_ptr<Decoder> operator()(const LstmDecoderOptions& options) const {
    return make_lstm_decoder(options, setup);
  }
  std::shared_ptr<Decoder> operator()(const ConvDecoderOptions& options) const {
    return make_conv_decoder(options, setup);
  }
  std::shared_ptr<Decoder> operator()(const LightDecoderOptions& options) const {
    return make_light_decoder(options, setup);
  }
  std::shared_ptr<Decoder> operator()(const DynamicDecoderOptions& options) const {
    return make_dynamic_decoder(options, setup);
  }
};

/// Layers of a ConvS2S decoder that attend to the encoder; each batch goes through one decoder.
int64_t attending_layers(const Seq2SeqOptions& options) {
  int64_t most = 0;
  for (const DecoderChoice* decoder : decoders_of(options)) {
    if (!decoder->is<ConvDecoderOptions>()) continue;
    most = std::max(most, decoder->as<ConvDecoderOptions>().num_layers);
  }
  return most;
}

std::function<std::shared_ptr<Encoder>(const PartSetup&)> second_encoder_of(
    const Seq2SeqOptions& options) {
  if (!has_two_encoders(options)) return nullptr;
  return [&options](const PartSetup& part) {
    return make_encoder(options.encoders.back(), options, part, attending_layers(options));
  };
}

}  // namespace

std::shared_ptr<Encoder> make_encoder(const EncoderChoice& choice, const LayerStyle& style,
                                      const PartSetup& setup, int64_t num_attentions) {
  return choice.visit(MakeEncoder{style, setup, num_attentions});
}

std::shared_ptr<Decoder> make_decoder(const DecoderChoice& choice, const LayerStyle& style,
                                      const PartSetup& setup) {
  return choice.visit(MakeDecoder{style, setup});
}

std::shared_ptr<Seq2SeqModel> make_model(const Seq2SeqOptions& options, const ModelSetup& setup,
                                         nn::OutputLoss loss, nn::OutputLoss pair_loss) {
  if (const auto wrong = option_conflicts(options); !wrong.empty()) {
    throw Error(ExitCode::kUsage, wrong.front().keys.front() + ": " + wrong.front().what,
                wrong.front().hint);
  }
  require(options.tie_embeddings != "all" || setup.src_rows == setup.tgt_rows,
          "model.tie_embeddings = \"all\" needs one vocabulary, but the source has " +
              std::to_string(setup.src_rows) + " rows and the target " +
              std::to_string(setup.tgt_rows),
          "use a joint vocabulary (tokenizer.joint = true) or model.tie_embeddings = \"decoder\"");
  const EncoderDecoderParts parts{
      .d_model = options.d_model,
      .tie_embeddings = options.tie_embeddings,
      .output_bias = options.output_bias,
      .embedding_scale = options.embedding_scale,
      .shared_rows = rows_of_shared_table(options),
      .init = init_rules_of(options),
      .lora = options.lora,
      .adapter = options.adapter,
      .src_word_dropout = options.src_word_dropout,
      .tgt_word_dropout = options.tgt_word_dropout,
      .encoder =
          [&](const PartSetup& part) {
            return make_encoder(first_encoder(options), options, part, attending_layers(options));
          },
      .second_encoder = second_encoder_of(options),
      .decoder =
          [&](const PartSetup& part) { return make_decoder(options.decoder, options, part); }};
  nn::OutputLosses losses{.one = std::move(loss), .pair = std::move(pair_loss)};
  if (options.heads.empty()) {
    return std::make_shared<EncoderDecoder>(parts, setup, std::move(losses));
  }
  std::vector<HeadParts> heads;
  for (const HeadOptions& head : options.heads) {
    heads.push_back({.name = head.name, .decoder = [&](const PartSetup& part) {
                       return make_decoder(head.decoder, options, part);
                     }});
  }
  return std::make_shared<SeveralDecoders>(parts, heads, setup, losses);
}

int64_t num_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace stretto::models
