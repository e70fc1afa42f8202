#include "families/language_model/folders/ctranslate2_causal.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "interchange/ctranslate2.h"
#include "interchange/folder_tensors.h"
#include "interchange/incompatibility.h"
#include "interchange/new_folder.h"
#include "interchange/tokenizer_folder.h"
#include "text/tokenizer.h"

namespace stretto::interchange {
namespace {

using models::CausalTransformerOptions;

constexpr uint32_t kCausalRevision = 8;  // of TransformerDecoderSpec

CTranslate2Layers layers_of_causal(const CausalTransformerOptions& model) {
  const auto sizes = models::sizes_of(model);
  const bool equal_parts = model.head_dim == 0 || model.head_dim * sizes.num_heads == sizes.d_model;
  CTranslate2Layers layers;
  layers.scope = "decoder";
  layers.num_layers = sizes.num_layers;
  layers.num_heads = sizes.num_heads;
  layers.num_kv_heads = model.num_kv_heads;
  layers.head_dim = equal_parts ? 0 : model.head_dim;
  layers.pre_norm = model.norm == "pre";
  layers.rms_norm = model.norm_layer == "rms_norm";
  layers.activation = model.activation;
  layers.scales_embeddings = model.embedding_scale != "none";
  layers.rope = model.positions == "rotary" ? &model.rope : nullptr;
  layers.qk_norm = model.qk_norm;
  return layers;
}

std::string problem_of_causal_form(const CausalTransformerOptions& model) {
  if (model.adapter.is_on()) return adapter_incompatibility(model.adapter);
  if (model.norm == "res_post") {
    return "model.norm = \"res_post\": its norms stand in front of parts, or behind the sums";
  }
  if (model.norm_layer == "batch_norm") {
    return "model.norm_layer = \"batch_norm\": its norms are over the width of a token";
  }
  if (model.parallel_residual) return "model.parallel_residual = true: its parts follow each other";
  if (model.positions != "learned" && model.positions != "rotary") {
    return "model.positions = \"" + model.positions + "\": its positions are learned or rotary";
  }
  if (model.sliding_window > 0) return "model.sliding_window: it attends to all earlier tokens";
  if (model.attention_softcap > 0) return "model.attention_softcap: its scores are not capped";
  if (model.logit_softcap > 0) return "model.logit_softcap: its logits are not capped";
  if (model.adaptive_softmax.is_on()) {
    return "model.adaptive_softmax: its output is one softmax over all tokens";
  }
  return "";
}

void add_causal_output(const CausalTransformerOptions& model, NamedTensors& tensors,
                       CTranslate2Model& file) {
  constexpr const char *kTable = "decoder/embeddings/weight", *kTokens = "decoder.embedding.weight",
                       *kProjection = "decoder/projection/weight";
  file.add_matrix(kTable, tensors.take(kTokens));
  if (model.tie_embeddings) {
    file.add_alias(kProjection, kTable);
  } else {
    file.add_matrix(kProjection, tensors.take("output.weight"));
  }
  if (const auto* bias = tensors.find("output.bias")) {
    file.add_tensor("decoder/projection/bias", *bias);
  }
}

std::vector<std::string> pieces_of_causal(const text::Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < tokenizer.size(); ++id) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

/// Where a vocabulary has no beginning or no unknown piece, the end stands for it, as in GPT-2's.
std::string config_of_causal(const CausalTransformerOptions& model,
                             const text::Tokenizer& tokenizer) {
  const auto specials = tokenizer.specials();
  const auto piece = [&](int64_t id, const std::string& instead) {
    return id < 0 ? instead : tokenizer.piece(id);
  };
  const std::string end = piece(specials.eos, piece(specials.bos, tokenizer.piece(0)));
  const bool shares_keys =
      model.num_kv_heads > 0 && model.num_kv_heads != models::sizes_of(model).num_heads;
  return ctranslate2_config({{"bos_token", piece(specials.bos, end)},
                             {"eos_token", end},
                             {"layer_norm_epsilon", model.norm_epsilon},
                             {"multi_query_attention", shares_keys},
                             {"unk_token", piece(specials.unk, end)}});
}

/// A config.json of `transformers` would take the place of CTranslate2's.
std::map<std::string, std::string> other_files(const ExportedCausal& model) {
  auto files = tokenizer_files(model.tokenizer, model.description.model.max_positions,
                               /*num_segments=*/0);
  files.erase("config.json");
  return files;
}

}  // namespace

std::string ctranslate2_incompatibility(const CausalTransformerOptions& model) {
  if (auto problem = problem_of_causal_form(model); !problem.empty()) return problem;
  return ctranslate2_layers_problem(layers_of_causal(model));
}

void export_ctranslate2_causal(const ExportedCausal& model, StoredWeights weights,
                               const std::filesystem::path& folder) {
  const auto& options = model.description.model;
  require_expressed("CTranslate2 has no such model", ctranslate2_incompatibility(options));
  const auto tokenizer = text::make_spec_tokenizer(model.tokenizer, "tokenizer", 0);
  NamedTensors tensors(without_spare_rows(
      model.tensors, model.description.vocab_size,
      [](const std::string& name) { return is_causal_table(name) || name == "output.bias"; }));
  CTranslate2Model file("TransformerDecoderSpec", kCausalRevision, weights, tensors);
  file.add_layers(layers_of_causal(options));
  file.add_flag("decoder/start_from_zero_embedding", false);
  file.add_flag("decoder/alibi", false);
  file.add_int16("decoder/alignment_layer", -1);
  file.add_int16("decoder/alignment_heads", 1);
  add_causal_output(options, tensors, file);
  tensors.require_all_taken("CTranslate2");
  NewFolder made(folder);
  file.write(made.path() / "model.bin");
  write_file_atomic(made.path() / "config.json", config_of_causal(options, *tokenizer));
  write_file_atomic(made.path() / "vocabulary.json",
                    ctranslate2_vocabulary(pieces_of_causal(*tokenizer)));
  for (const auto& [name, bytes] : other_files(model)) {
    write_file_atomic(made.path() / name, bytes);
  }
  made.publish();
}

}  // namespace stretto::interchange
