#include "models/several_decoders.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "models/heads/token.h"

namespace stretto::models {
namespace {

/// Modules side by side under one name.
class NamedModules : public torch::nn::Module {
 public:
  using torch::nn::Module::register_module;
};

}  // namespace

SeveralDecoders::SeveralDecoders(const EncoderDecoderParts& parts,
                                 const std::vector<HeadParts>& heads, const ModelSetup& setup,
                                 const nn::OutputLosses& losses)
    : ties_all_(parts.tie_embeddings == "all"),
      ties_none_(!parts.ties_output()),
      output_bias_(parts.output_bias) {
  const nn::Init init = parts.root(setup);
  JoinedParts joined;
  joined.embedding = parts.joint_table(init, setup);
  if (joined.embedding) register_module("embedding", joined.embedding);
  joined.encoders = encoders_ = SourceEncoders::make(parts, init, setup, joined.embedding);
  encoders_.register_in(*this);
  const auto decoders = register_module("decoders", std::make_shared<NamedModules>());
  const auto outputs = register_module("outputs", std::make_shared<NamedModules>());
  for (const HeadParts& head : heads) {
    joined.decoder = head.decoder(parts.decoder_setup(init.child("decoders").child(head.name),
                                                      setup, joined.embedding, encoders_.width()));
    decoders->register_module(head.name, joined.decoder);
    joined.head = outputs->register_module(
        head.name, std::make_shared<TokenHead>(
                       TokenHeadSetup{.init = init.child("outputs").child(head.name),
                                      .width = joined.decoder->width(),
                                      .rows = setup.tgt_rows,
                                      .num_classes = setup.num_tgt_classes,
                                      .tied = parts.output_table(*joined.decoder),
                                      .bias = parts.output_bias,
                                      .matrix_name = "outputs." + head.name + ".weight"},
                       losses));
    names_.push_back(head.name);
    heads_.push_back(std::make_shared<EncoderDecoder>(joined, parts, setup));
  }
}

EncoderDecoder& SeveralDecoders::head_of(const data::Batch& batch) const {
  return *heads_.at(static_cast<size_t>(batch.stream));
}

LossOutput SeveralDecoders::loss(const data::Batch& batch, const ForwardContext& context) {
  return head_of(batch).loss(batch, context);
}

LossOutput SeveralDecoders::loss(const data::Batch& batch, const PairTensors& tensors,
                                 const ForwardContext& context) {
  return head_of(batch).loss(batch, tensors, context);
}

PairTensors SeveralDecoders::tensors_of(const data::Batch& batch, bool training,
                                        c10::Device device) const {
  return head_of(batch).tensors_of(batch, training, device);
}

std::unique_ptr<decoding::StepModel> SeveralDecoders::start(const data::PackedTokens& /*src*/,
                                                            int64_t /*lanes_per_src*/) {
  throw std::logic_error("a model with several decoders decodes by one of them: head(number)");
}

std::vector<VocabularyTable> SeveralDecoders::vocabulary_tables() const {
  std::vector<VocabularyTable> tables;
  for (const std::string& name : names_) {
    if (output_bias_) tables.push_back({"outputs." + name + ".bias"});
  }
  if (ties_all_) {
    tables.push_back({"embedding.weight"});
    return tables;
  }
  for (VocabularyTable& table : encoders_.vocabulary_tables()) tables.push_back(std::move(table));
  for (const std::string& name : names_) {
    tables.push_back({"decoders." + name + ".embedding.weight"});
    if (ties_none_) tables.push_back({"outputs." + name + ".weight"});
  }
  return tables;
}

std::vector<optim::TiedName> SeveralDecoders::tied_names() const {
  if (ties_none_) return {};
  std::vector<optim::TiedName> tied = encoders_.tied_names(ties_all_);
  for (const std::string& name : names_) {
    const std::string own = "decoders." + name + ".embedding.weight";
    if (ties_all_) tied.push_back({own, "embedding.weight"});
    tied.push_back({"outputs." + name + ".weight", ties_all_ ? "embedding.weight" : own});
  }
  return tied;
}

int64_t SeveralDecoders::max_target_length() const {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& head : heads_) fewest = std::min(fewest, head->max_target_length());
  return fewest;
}

double SeveralDecoders::operations(double src_length, double tgt_length) const {
  double sum = 0;
  for (const auto& head : heads_) sum += head->operations(src_length, tgt_length);
  return sum / static_cast<double>(heads_.size());
}

std::vector<torch::Tensor> SeveralDecoders::alignments(const data::Batch& batch, int64_t layer) {
  return head_of(batch).alignments(batch, layer);
}

}  // namespace stretto::models
