#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "families/translation/folders/marian.h"
#include "interchange/import_options.h"
#include "interchange/imported_run.h"
#include "text/tokenizer.h"

namespace stretto::interchange {

/// A translation model: tensors under the names of models::EncoderDecoder. Its pieces are counted
/// on the target side.
struct ImportedSeq2Seq : ImportedRun {
  Seq2SeqDescription description;
  text::TokenizerPair tokenizers;
};

/// config.json of a translation model. Throws Error(kBadData) that names the key.
Seq2SeqDescription read_seq2seq_config(const ConfigReader& config);
Seq2SeqDescription read_seq2seq_config(std::string_view bytes, const std::string& where);

/// Reads a folder with config.json, weights, source.spm, target.spm and vocab.json. Writes nothing.
/// Throws as import_folder(), and for special ids on which config.json and vocabulary do not agree.
ImportedSeq2Seq import_seq2seq(const std::filesystem::path& folder,
                               const ImportOptions& options = {});

}  // namespace stretto::interchange
