#include "experiment/tensor_names.h"

#include <cstdint>
#include <string>
#include <utility>

namespace stretto::experiment {
namespace {

/// Collects names below a prefix.
class Names {
 public:
  Names(std::vector<optim::TensorName>& all, std::string prefix)
      : all_(all), prefix_(std::move(prefix)) {}

  void add_table(const std::string& name) { all_.push_back({prefix_ + name + ".weight"}); }
  void add_linear(const std::string& name) {
    add_table(name);
    all_.push_back({prefix_ + name + ".bias", true});
  }
  void add_norm(const std::string& name) {
    for (const char* part : {".weight", ".bias"}) all_.push_back({prefix_ + name + part, true});
  }

 private:
  std::vector<optim::TensorName>& all_;
  std::string prefix_;
};

void add_stack(std::vector<optim::TensorName>& all, const std::string& stack, int64_t num_layers,
               const models::Seq2SeqOptions& model) {
  const bool decodes = stack == "decoder.";
  Names whole(all, stack);
  if (model.tie_embeddings != "all") whole.add_table("embedding");
  if (model.positions == "learned") whole.add_table("positions");
  if (model.norm != "post") whole.add_norm("final_norm");
  for (int64_t i = 0; i < num_layers; ++i) {
    Names layer(all, stack + "layers." + std::to_string(i) + ".");
    for (const char* part : {"self_attention.qkv", "self_attention.out"}) layer.add_linear(part);
    for (const char* part : {"ffn.up", "ffn.down"}) {
      model.activation == "swiglu" ? layer.add_table(part) : layer.add_linear(part);
    }
    layer.add_norm("self_residual.norm");
    layer.add_norm("ffn_residual.norm");
    if (!decodes) continue;
    for (const char* part : {"q", "kv", "out"}) {
      layer.add_linear(std::string("cross_attention.") + part);
    }
    layer.add_norm("cross_residual.norm");
  }
}

}  // namespace

std::vector<optim::TensorName> tensors_of(const models::Seq2SeqOptions& model) {
  std::vector<optim::TensorName> all;
  Names top(all, "");
  if (model.tie_embeddings == "all") top.add_table("embedding");
  if (model.tie_embeddings == "none") top.add_table("output");
  add_stack(all, "encoder.", model.encoder.as<models::StackOptions>().num_layers, model);
  add_stack(all, "decoder.", model.decoder.as<models::StackOptions>().num_layers, model);
  return all;
}

}  // namespace stretto::experiment
