#include "families/translation/folders/export_seq2seq.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "families/translation/folders/marian_tokenizer.h"
#include "families/translation/translation_options.h"
#include "interchange/folder_tensors.h"
#include "interchange/new_folder.h"
#include "interchange/tensors.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

Seq2SeqDescription description_of(const ExportedSeq2Seq& model) {
  return {.model = model.model,
          .vocab_size = model.tokenizers.tgt->size(),
          .shares_tables = model.model.tie_embeddings == "all",
          .specials = model.tokenizers.tgt->specials(),
          .beam_size = model.beam_size};
}

bool is_vocabulary_table(const std::string& name) {
  return name == "embedding.weight" || name == "encoder.embedding.weight" ||
         name == "decoder.embedding.weight" || name == "output.weight" || name == kOutputBias;
}

}  // namespace

ExportedSeq2Seq exported_seq2seq(const experiment::TranslationOptions& sections,
                                 const std::map<std::string, std::string>& assets) {
  return {.model = sections.model,
          .tokenizers = text::load_tokenizers(sections.tokenizer, assets),
          .beam_size = sections.decode.beam_size,
          .tensors = {}};
}

void require_seq2seq_class(const models::Seq2SeqOptions& model,
                           const text::TokenizerPair& tokenizers, const std::string& wanted) {
  const MarianClass& its = marian_class(model);
  if (wanted != "auto" && wanted != its.model_type) {
    throw Error(ExitCode::kUsage,
                "--model-type " + wanted + ": a translation model with norm = \"" + model.norm +
                    "\" is not written so",
                "leave the option out");
  }
  std::string incompatibility = marian_incompatibility(model);
  if (incompatibility.empty() && tokenizers.src->size() != tokenizers.tgt->size()) {
    incompatibility = "the source has " + with_thousands(tokenizers.src->size()) +
                      " ids and the target " + with_thousands(tokenizers.tgt->size()) +
                      ": its tables have the same rows";
  }
  if (incompatibility.empty()) return;
  throw Error(ExitCode::kUsage,
              "no class of transformers is equal to the model: " + std::string(its.name) + ": " +
                  incompatibility,
              "docs/import-export.md lists what each class can express");
}

std::string seq2seq_class_name(const models::Seq2SeqOptions& model) {
  return std::string(marian_class(model).name);
}

std::string export_seq2seq(const ExportedSeq2Seq& model, const fs::path& folder) {
  const Seq2SeqDescription description = description_of(model);
  auto names = marian_names(description);
  if (model.model.output_bias) {
    names.push_back({.theirs = {kMarianOutputBias}, .ours = kOutputBias});
  }
  require_all_written(model.tensors, names);
  auto theirs =
      separated(without_spare_rows(model.tensors, description.vocab_size, &is_vocabulary_table),
                names, 0, "the checkpoint");
  for (auto& [tensor, make] : theirs) {
    if (tensor.name == kMarianOutputBias) tensor.shape.insert(tensor.shape.begin(), 1);
  }
  const auto tokenizer = marian_tokenizer_files(model.tokenizers, model.model.max_positions);
  NewFolder target(folder);
  store::stream_safetensors(target.path() / "model.safetensors", theirs, {{"format", "pt"}});
  for (const auto& [name, bytes] : tokenizer) write_file_atomic(target.path() / name, bytes);
  write_file_atomic(target.path() / "generation_config.json", write_marian_generation(description));
  write_file_atomic(target.path() / "config.json", write_marian_config(description));
  target.publish();
  if (!tokenizer.empty()) return {};
  return "has no tokenizer: MarianTokenizer reads SentencePiece models, and those of the run are "
         "of another kind";
}

}  // namespace stretto::interchange
