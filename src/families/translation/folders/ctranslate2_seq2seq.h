#pragma once

#include <filesystem>
#include <string>

#include "families/translation/folders/export_seq2seq.h"
#include "interchange/stored_weights.h"
#include "models/seq2seq_options.h"

namespace stretto::interchange {

/// Why CTranslate2 cannot express a translation model; empty when it can.
std::string ctranslate2_incompatibility(const models::Seq2SeqOptions& model);

/// Writes a model folder of CTranslate2, `model.bin`, `config.json`, the vocabularies, and the
/// files of the run's tokenizer, which cut text into the pieces of these. ctranslate2.Translator
/// adds the end to a source itself.
///
/// @param model    its tensors with encoder.positions.weight and decoder.positions.weight
///                 [max_positions, D] unless positions are rotary
/// Throws Error(kUsage) with the reason where there is none or the folder is there already;
/// Error(kBadData) for tensors that are not those of the model.
void export_ctranslate2_seq2seq(const ExportedSeq2Seq& model, StoredWeights weights,
                                const std::filesystem::path& folder);

}  // namespace stretto::interchange
