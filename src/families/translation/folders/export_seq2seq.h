#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "families/translation/folders/marian.h"
#include "families/translation/translation_options.h"
#include "store/safetensors.h"
#include "text/tokenizer.h"

namespace stretto::interchange {

/// A translation model to be written.
struct ExportedSeq2Seq {
  models::Seq2SeqOptions model;
  text::TokenizerPair tokenizers;
  int64_t beam_size = 0;
  /// Under the names of models::EncoderDecoder; with encoder.positions.weight and
  /// decoder.positions.weight [max_positions, D] wherever stores_positions().
  std::vector<store::TensorView> tensors;
};

/// What a run says of such a model, without tensors.
/// @param assets  of the run folder, which has the tokenizers
ExportedSeq2Seq exported_seq2seq(const experiment::TranslationOptions& sections,
                                 const std::map<std::string, std::string>& assets);

/// Throws Error(kUsage) with the reason, where no class of `transformers` expresses the model.
/// @param wanted  a model_type, or "auto"
void require_seq2seq_class(const models::Seq2SeqOptions& model,
                           const text::TokenizerPair& tokenizers, const std::string& wanted);

/// The class that expresses the model, as messages name it.
std::string seq2seq_class_name(const models::Seq2SeqOptions& model);

/// Writes config.json, generation_config.json, model.safetensors and the files of the tokenizer.
/// Returns what the folder lacks, in words: empty if nothing, "has no tokenizer: …" where the run's
/// are not SentencePiece models.
/// Throws Error(kUsage) when the folder is there already; Error(kBadData) for tensors that are not
/// those of the model.
std::string export_seq2seq(const ExportedSeq2Seq& model, const std::filesystem::path& folder);

}  // namespace stretto::interchange
