#include "models/registry.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "models/decoders/transformer.h"
#include "models/encoder_decoder.h"
#include "models/encoders/transformer.h"

namespace stretto::models {
namespace {

using MakeModel = std::shared_ptr<Seq2SeqModel> (*)(const TransformerOptions&, const ModelSetup&,
                                                    nn::OutputLoss);

void require(bool holds, const std::string& what, const std::string& advice) {
  if (!holds) throw Error(ExitCode::kUsage, what, advice);
}

void check_heads(const TransformerOptions& options, const StackOptions& stack,
                 const std::string& name) {
  const std::string heads = "model." + name + ".num_heads = " + std::to_string(stack.num_heads);
  const std::string width = "model.d_model = " + std::to_string(options.d_model);
  require(options.d_model % stack.num_heads == 0, heads + " does not divide " + width,
          "choose a number of heads that divides the width");
  require(options.positions != "rotary" || options.d_model / stack.num_heads % 2 == 0,
          heads + " and " + width + " give heads of odd width, which rotary positions cannot turn",
          "choose a number of heads that leaves an even width");
}

std::shared_ptr<Seq2SeqModel> make_transformer(const TransformerOptions& options,
                                               const ModelSetup& setup, nn::OutputLoss loss) {
  check_heads(options, options.encoder, "encoder");
  check_heads(options, options.decoder, "decoder");
  require(options.tie_embeddings != "all" || setup.src_rows == setup.tgt_rows,
          "model.tie_embeddings = \"all\" needs one vocabulary, but the source has " +
              std::to_string(setup.src_rows) + " rows and the target " +
              std::to_string(setup.tgt_rows),
          "use a joint vocabulary (tokenizer.joint = true) or model.tie_embeddings = \"decoder\"");
  TORCH_CHECK(setup.num_tgt_classes > 0 && setup.num_tgt_classes <= setup.tgt_rows,
              "[transformer] num_tgt_classes must be in 1..", setup.tgt_rows, ", got ",
              setup.num_tgt_classes);
  const EncoderDecoderParts parts{.d_model = options.d_model,
                                  .tie_embeddings = options.tie_embeddings,
                                  .encoder =
                                      [&](const PartSetup& part) {
                                        return std::make_shared<TransformerEncoder>(
                                            TransformerPart(options, options.encoder), part);
                                      },
                                  .decoder =
                                      [&](const PartSetup& part) {
                                        return std::make_shared<TransformerDecoder>(
                                            TransformerPart(options, options.decoder), part);
                                      }};
  return std::make_shared<EncoderDecoder>(parts, setup, std::move(loss));
}

constexpr std::array<std::pair<std::string_view, MakeModel>, 1> kModels{{
    {"transformer", &make_transformer},
}};

}  // namespace

std::shared_ptr<Seq2SeqModel> make_model(const TransformerOptions& options, const ModelSetup& setup,
                                         nn::OutputLoss loss) {
  std::string known;
  for (const auto& [name, make] : kModels) {
    if (name == options.name) return make(options, setup, std::move(loss));
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ExitCode::kUsage, "model.name: unknown model `" + options.name + "`",
              "known: " + known);
}

int64_t num_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace stretto::models
