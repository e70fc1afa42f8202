#include "families/translation/folders/ctranslate2_seq2seq.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/file.h"
#include "families/translation/folders/marian.h"
#include "interchange/ctranslate2.h"
#include "interchange/folder_tensors.h"
#include "interchange/incompatibility.h"
#include "interchange/new_folder.h"
#include "models/transformer_options.h"
#include "nn/rotary_options.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSeq2SeqRevision = 7;                                  // of TransformerSpec
constexpr double kSeq2SeqLayerEpsilon = 1e-5, kSeq2SeqRmsEpsilon = 1e-6;  // of [model]

/// One side of the model. @param rope  of rotary positions, else not read
CTranslate2Layers layers_of_side(const models::Seq2SeqOptions& model,
                                 const models::StackOptions& stack, const std::string& scope,
                                 const nn::RotaryOptions& rope) {
  CTranslate2Layers layers;
  layers.scope = scope;
  layers.num_layers = stack.num_layers;
  layers.num_heads = stack.num_heads;
  layers.num_kv_heads = stack.num_kv_heads;
  layers.pre_norm = model.norm == "pre";
  layers.rms_norm = model.norm_layer == "rms_norm";
  layers.activation = model.activation;
  layers.reads_memory = scope == "decoder";
  layers.scales_embeddings = models::all_scale_embeddings(model);
  layers.rope = model.positions == "rotary" ? &rope : nullptr;
  return layers;
}

std::string problem_of_parts(const models::Seq2SeqOptions& model) {
  if (auto incompatibility = incompatibility_of_parts(model); !incompatibility.empty()) {
    return incompatibility;
  }
  if (model.encoder.as<models::StackOptions>().head_dim > 0 ||
      model.decoder.as<models::StackOptions>().head_dim > 0) {
    return "head_dim of model.encoder or model.decoder: its heads have d_model / num_heads columns "
           "each";
  }
  return "";
}

std::string problem_of_style(const models::LayerStyle& style) {
  if (style.norm == "res_post") {
    return "model.norm = \"res_post\": its norms stand in front of parts, or behind the sums";
  }
  if (style.norm_layer == "batch_norm") {
    return "model.norm_layer = \"batch_norm\": its norms are over the width of a token";
  }
  if (style.parallel_residual) {
    return "model.parallel_residual = true: beside an encoder, its parts follow each other";
  }
  if (style.positions == "alibi" || style.positions == "t5" || style.positions == "shaw") {
    return "model.positions = \"" + style.positions +
           "\": a vector is added to each embedding, or queries and keys are turned";
  }
  return "";
}

bool is_token_table(const std::string& name) {
  return name == "embedding.weight" || name == "encoder.embedding.weight" ||
         name == "decoder.embedding.weight" || name == "output.weight" || name == kOutputBias;
}

/// Tables of tokens, and the projection that may be one of them.
void add_tables(const models::Seq2SeqOptions& model, NamedTensors& tensors,
                CTranslate2Model& file) {
  constexpr const char *kSource = "encoder/embeddings_0/weight",
                       *kTarget = "decoder/embeddings/weight",
                       *kProjection = "decoder/projection/weight";
  if (model.tie_embeddings == "all") {
    file.add_matrix(kTarget, tensors.take("embedding.weight"));
    file.add_alias(kSource, kTarget);
  } else {
    file.add_matrix(kSource, tensors.take("encoder.embedding.weight"));
    file.add_matrix(kTarget, tensors.take("decoder.embedding.weight"));
  }
  if (model.tie_embeddings == "none") {
    file.add_matrix(kProjection, tensors.take("output.weight"));
  } else {
    file.add_alias(kProjection, kTarget);
  }
  if (const auto* bias = tensors.find(kOutputBias)) {
    file.add_tensor("decoder/projection/bias", *bias);
  }
}

std::vector<std::string> pieces_of(const text::Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < tokenizer.size(); ++id) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

void write_vocabularies(const text::TokenizerPair& tokenizers, const fs::path& folder) {
  const auto source = pieces_of(*tokenizers.src), target = pieces_of(*tokenizers.tgt);
  if (source == target) {
    write_file_atomic(folder / "shared_vocabulary.json", ctranslate2_vocabulary(target));
    return;
  }
  write_file_atomic(folder / "source_vocabulary.json", ctranslate2_vocabulary(source));
  write_file_atomic(folder / "target_vocabulary.json", ctranslate2_vocabulary(target));
}

std::string config_of(const ExportedSeq2Seq& model) {
  const auto& target = *model.tokenizers.tgt;
  const auto specials = target.specials();
  const std::string begin = target.piece(specials.bos), end = target.piece(specials.eos);
  const std::string unknown = specials.unk < 0 ? end : target.piece(specials.unk);
  const bool rms_norm = model.model.norm_layer == "rms_norm";
  return ctranslate2_config(
      {{"add_source_bos", false},
       {"add_source_eos", true},
       {"bos_token", begin},
       {"decoder_start_token", begin},
       {"eos_token", end},
       {"layer_norm_epsilon", rms_norm ? kSeq2SeqRmsEpsilon : kSeq2SeqLayerEpsilon},
       {"multi_query_attention", false},
       {"unk_token", unknown}});
}

}  // namespace

std::string ctranslate2_incompatibility(const models::Seq2SeqOptions& model) {
  if (auto problem = problem_of_parts(model); !problem.empty()) return problem;
  if (auto problem = problem_of_style(model); !problem.empty()) return problem;
  const nn::RotaryOptions rope;
  const auto of_encoder =
      layers_of_side(model, model.encoder.as<models::StackOptions>(), "encoder", rope);
  if (auto problem = ctranslate2_layers_problem(of_encoder); !problem.empty()) return problem;
  return ctranslate2_layers_problem(
      layers_of_side(model, model.decoder.as<models::StackOptions>(), "decoder", rope));
}

void export_ctranslate2_seq2seq(const ExportedSeq2Seq& model, StoredWeights weights,
                                const fs::path& folder) {
  require_expressed("CTranslate2 has no such model", ctranslate2_incompatibility(model.model));
  // Source and target may have tables of other sizes: each is cut to its own ids.
  const int64_t source = model.tokenizers.src->size(), target = model.tokenizers.tgt->size();
  auto views = without_spare_rows(model.tensors, source, [](const std::string& name) {
    return name == "encoder.embedding.weight";
  });
  views = without_spare_rows(std::move(views), target, [](const std::string& name) {
    return is_token_table(name) && name != "encoder.embedding.weight";
  });
  NamedTensors tensors(std::move(views));
  CTranslate2Model file("TransformerSpec", kSeq2SeqRevision, weights, tensors);
  const nn::RotaryOptions rope;
  file.add_layers(
      layers_of_side(model.model, model.model.encoder.as<models::StackOptions>(), "encoder", rope));
  file.add_layers(
      layers_of_side(model.model, model.model.decoder.as<models::StackOptions>(), "decoder", rope));
  file.add_int8("encoder/embeddings_merge", 0);
  file.add_flag("encoder/multi_query_attention", false);
  file.add_int16("decoder/alignment_layer", -1);
  file.add_int16("decoder/alignment_heads", 1);
  file.add_flag("decoder/start_from_zero_embedding", false);
  add_tables(model.model, tensors, file);
  tensors.require_all_taken("CTranslate2");
  NewFolder made(folder);
  file.write(made.path() / "model.bin");
  write_file_atomic(made.path() / "config.json", config_of(model));
  write_vocabularies(model.tokenizers, made.path());
  for (const auto& [name, bytes] : model.tokenizers.assets) {
    write_file_atomic(made.path() / name, bytes);
  }
  made.publish();
}

}  // namespace stretto::interchange
