#include "families/translation/folders/import_seq2seq.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "families/translation/folders/marian_tokenizer.h"
#include "families/translation/translation_options.h"
#include "interchange/config_reader.h"
#include "interchange/described_experiment.h"
#include "interchange/folder_tensors.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

void require_marian_class(const ConfigReader& config) {
  const MarianClass& expected = read_marian_class(config);
  const auto name = model_class_of(config);
  if (!config.has("architectures") || name == expected.name) return;
  config.refuse("architectures", "has `" + printable(name) + "`",
                "of its models " + std::string(expected.name) + " is imported, which translates");
}

void require_special(const fs::path& folder, const char* key, int64_t stated, const char* piece,
                     int64_t id) {
  if (stated == id) return;
  throw Error(ExitCode::kBadData,
              (folder / "config.json").string() + ": `" + key + "` is " + std::to_string(stated) +
                  ", but `" + piece + "` of the vocabulary has id " + std::to_string(id),
              "put the tokenizer of these weights into the folder");
}

void require_specials(const ImportedSeq2Seq& model, const fs::path& folder) {
  const auto& stated = model.description.specials;
  for (const auto* side : {model.tokenizers.src.get(), model.tokenizers.tgt.get()}) {
    const auto found = side->specials();
    require_special(folder, "eos_token_id", stated.eos, "</s>", found.eos);
    require_special(folder, "pad_token_id", stated.pad, "<pad>", found.pad);
  }
}

/// Marian's decoders begin with padding; one that begins with another piece says so in an asset.
void take_tokenizers(ImportedSeq2Seq& model, const fs::path& folder) {
  model.assets = read_marian_tokenizer(folder, model.description.shares_tables);
  model.tokenizers = text::load_tokenizers({}, model.assets);
  require_specials(model, folder);
  const int64_t begin = model.description.specials.bos;
  const auto found = model.tokenizers.tgt->specials();
  if (begin == found.bos) return;
  // An id without a piece reads as the unknown one.
  if (begin >= model.tokenizers.tgt->size() ||
      model.tokenizers.tgt->piece(begin) == model.tokenizers.tgt->piece(found.unk)) {
    throw Error(ExitCode::kBadData,
                (folder / "config.json").string() + ": `decoder_start_token_id` is " +
                    std::to_string(begin) + ", which is no token that a decoder can begin with",
                "put the tokenizer of these weights into the folder");
  }
  model.assets[text::kBeginPieceAsset] = model.tokenizers.tgt->piece(begin);
  model.tokenizers = text::load_tokenizers({}, model.assets);
}

/// Marian's table of positions [rows, width], as nn::Sinusoids has it.
std::vector<float> marian_positions(int64_t rows, int64_t width) {
  const int64_t sines = width - width / 2;
  std::vector<float> table;
  table.reserve(static_cast<size_t>(rows * width));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const bool is_sine = column < sines;
      const int64_t pair = is_sine ? column : column - sines;
      const double angle =
          static_cast<double>(row) /
          std::pow(10000.0, 2.0 * static_cast<double>(pair) / static_cast<double>(width));
      table.push_back(static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

bool nearly_equal(std::string_view bytes, const std::vector<float>& wanted) {
  constexpr float kRounding = 1e-6F;
  if (bytes.size() != wanted.size() * sizeof(float)) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
    if (!(std::abs(value - wanted[i]) <= kRounding)) return false;
  }
  return true;
}

constexpr std::array<std::pair<const char*, const char*>, 2> kPositionTables{
    {{"model.encoder.embed_positions.weight", "encoder.positions.weight"},
     {"model.decoder.embed_positions.weight", "decoder.positions.weight"}}};

void require_position_shape(const TensorView& table, const std::vector<int64_t>& shape,
                            const fs::path& folder) {
  if (table.shape == shape) return;
  throw Error(ExitCode::kBadData,
              folder.string() + ": `" + printable(table.name) +
                  "` does not have the rows of max_position_embeddings and the width of d_model in "
                  "config.json",
              "the weights are not those of the model that config.json describes");
}

/// Positions that a folder stores count, as they do in `transformers`: a table other than Marian's
/// makes a model of learned positions. Returns the names of the folder that were read.
std::vector<std::string> take_positions(ImportedSeq2Seq& model, const TensorsByName& theirs,
                                        const fs::path& folder) {
  auto& options = model.description.model;
  const std::vector<int64_t> shape{options.max_positions, options.d_model};
  std::vector<std::string> taken;
  for (const auto& [name, ours] : kPositionTables) {
    const auto found = theirs.find(name);
    if (found == theirs.end()) continue;
    require_position_shape(*found->second, shape, folder);
    taken.emplace_back(name);
  }
  if (taken.empty()) return taken;
  const auto wanted = marian_positions(options.max_positions, options.d_model);
  bool is_marian = true;
  std::vector<TensorView> tables;
  for (const auto& [name, ours] : kPositionTables) {
    const auto found = theirs.find(name);
    const std::string_view bytes =
        found == theirs.end() ? std::string_view(model.own->bytes.emplace_back(bytes_of(wanted)))
                              : to_f32(*found->second, model.own->bytes, folder.string()).bytes;
    is_marian = is_marian && nearly_equal(bytes, wanted);
    tables.push_back({ours, store::DType::kF32, shape, bytes});
  }
  if (is_marian) return taken;
  options.positions = "learned";
  for (TensorView& table : tables) model.tensors.push_back(std::move(table));
  return taken;
}

/// The bias of the output: a model whose bias is zero has none. Returns whether the folder has one.
bool take_output_bias(ImportedSeq2Seq& model, const TensorsByName& theirs, const fs::path& folder) {
  const auto found = theirs.find(kMarianOutputBias);
  if (found == theirs.end()) return false;
  TensorView bias = to_f32(*found->second, model.own->bytes, folder.string());
  const bool is_zero =
      std::all_of(bias.bytes.begin(), bias.bytes.end(), [](char byte) { return byte == 0; });
  if (is_zero) return true;
  bias.name = kOutputBias;
  bias.shape = {bias.num_elements()};
  model.description.model.output_bias = true;
  model.tensors.push_back(std::move(bias));
  return true;
}

/// Whether positions are tensors is known only when they were looked at: take_positions().
std::vector<NamePair> names_but_positions(const Seq2SeqDescription& description) {
  auto names = marian_names(description);
  std::erase_if(names, [](const NamePair& pair) {
    return std::any_of(kPositionTables.begin(), kPositionTables.end(),
                       [&](const auto& table) { return pair.ours == table.second; });
  });
  return names;
}

void take_seq2seq_tensors(ImportedSeq2Seq& model, const fs::path& folder,
                          const ImportOptions& options) {
  const TensorsByName theirs = by_modern_name(model.files->tensors(), folder);
  const auto unread = choose_marian_tables(theirs, model.description);
  model.names = names_but_positions(model.description);
  auto found = joined(theirs, model.names, 0, folder.string());
  model.tensors = found.list.tensors;
  model.missing = found.missing;
  model.own = std::make_shared<TensorList>(std::move(found.list));
  std::set<std::string> known(found.taken.begin(), found.taken.end());
  known.insert(unread.begin(), unread.end());
  require_equal_copies(theirs, marian_copies(model.description),
                       {.ours = model.tensors, .names = model.names}, folder, known);
  if (take_output_bias(model, theirs, folder)) known.insert(kMarianOutputBias);
  for (auto& name : take_positions(model, theirs, folder)) known.insert(std::move(name));
  for (const auto& [name, ours] : kPositionTables) model.names.push_back({{name}, ours});
  model.names.push_back({{kMarianOutputBias}, kOutputBias});
  NameMismatches mismatches{
      .model_class = model.model_class, .not_found = found.not_found, .extra = {}};
  for (const auto& [name, tensor] : theirs) {
    if (!known.contains(name)) mismatches.extra.push_back(name);
  }
  if (options.ignore_extra) model.left_out = mismatches.extra;
  require_names(mismatches, options, folder, "");
}

bool is_table_of(const std::string& name, bool source) {
  if (source) return name == "encoder.embedding.weight";
  return name == "embedding.weight" || name == "decoder.embedding.weight" ||
         name == "output.weight" || name == kOutputBias;
}

void fit_seq2seq_tables(ImportedSeq2Seq& model, const fs::path& folder, bool ignores_extra) {
  for (const bool source : {true, false}) {
    const auto& tokenizer = source ? *model.tokenizers.src : *model.tokenizers.tgt;
    VocabularySize size{.ids = tokenizer.size(),
                        .stated = model.description.vocab_size,
                        .multiple = text::TokenizerOptions().vocab_multiple,
                        .ignores_extra = ignores_extra};
    for (TensorView& tensor : model.tensors) {
      if (!is_table_of(tensor.name, source)) continue;
      size.table = name_in_folder(model.names, tensor.name);
      model.rows_left_out =
          std::max(model.rows_left_out, fit_rows(tensor, size, *model.own, folder));
    }
  }
}

/// How many hypotheses the folder's search keeps: newer ones say it in generation_config.json.
int64_t beam_of(const fs::path& folder, int64_t stated) {
  constexpr int64_t kWidestBeam = 1000;
  const fs::path path = folder / "generation_config.json";
  if (!fs::exists(path)) return stated;
  return read_config_file(path, kMaxConfigBytes).integer("num_beams", stated, 0, kWidestBeam);
}

experiment::Experiment experiment_of(const ImportedSeq2Seq& model) {
  experiment::TranslationOptions sections;
  sections.model = model.description.model;
  sections.tokenizer.joint = model.tokenizers.joint;
  if (sections.model.positions == "learned") {
    for (int64_t* longest : {&sections.data.max_src_tokens, &sections.data.max_tgt_tokens}) {
      *longest = std::min(*longest, sections.model.max_positions);
    }
  }
  if (model.description.beam_size > 0) sections.decode.beam_size = model.description.beam_size;
  return described_experiment(std::move(sections));
}

}  // namespace

Seq2SeqDescription read_seq2seq_config(std::string_view bytes, const std::string& where) {
  return read_seq2seq_config(ConfigReader(parse_json(bytes, where, kMaxConfigBytes), where));
}

Seq2SeqDescription read_seq2seq_config(const ConfigReader& config) {
  require_marian_class(config);
  return read_marian_config(config);
}

ImportedSeq2Seq import_seq2seq(const fs::path& folder, const ImportOptions& options) {
  if (options.encoder_only) {
    throw Error(ExitCode::kUsage,
                folder.string() + ": --encoder-only, but it is a translation model",
                "leave the option out: a model of both an encoder and a decoder is imported whole");
  }
  ImportedSeq2Seq model;
  model.description = read_seq2seq_config(read_folder_config(folder));
  auto& description = model.description;
  model.model_class = marian_class(description.model).name;
  description.beam_size = beam_of(folder, description.beam_size);
  take_tokenizers(model, folder);
  model.num_pieces = model.tokenizers.tgt->size();
  model.files = std::make_shared<const store::WeightFiles>(folder);
  take_seq2seq_tensors(model, folder, options);
  fit_seq2seq_tables(model, folder, options.ignore_extra);
  model.experiment = experiment_of(model);
  return model;
}

}  // namespace stretto::interchange
