#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/names.h"
#include "interchange/tensors.h"
#include "models/seq2seq_options.h"
#include "text/special_ids.h"

namespace stretto::interchange {

class ConfigReader;

/// A class of `transformers` that is Marian's Transformer, with its norms in one place. Pegasus is
/// the one with norms in front of the parts; its three tables of tokens are one.
struct MarianClass {
  std::string_view model_type, name;
  std::string_view norm;  ///< of [model]
};
inline constexpr std::array<MarianClass, 2> kMarianClasses{
    {{"marian", "MarianMTModel", "post"}, {"pegasus", "PegasusForConditionalGeneration", "pre"}}};

/// By `model_type`; null when it is another.
const MarianClass* find_marian_class(std::string_view model_type);
/// As find_marian_class(), of a config.json. Throws Error(kBadData) with the key when it is
/// another.
const MarianClass& read_marian_class(const ConfigReader& config);
/// By `model.norm`; the first where neither has it.
const MarianClass& marian_class(const models::Seq2SeqOptions& model);

/// A translation model as its folder describes it, beside the weights.
struct Seq2SeqDescription {
  models::Seq2SeqOptions model;
  int64_t vocab_size = 0;        ///< rows of each table of tokens, of the source's and the target's
  bool shares_tables = true;     ///< whether source and target have one vocabulary
  bool has_side_tables = false;  ///< with shares_tables: each has a table of its own
  text::SpecialIds specials{};   ///< of the target; bos: what the decoder begins with
  int64_t beam_size = 0;         ///< 0 = the folder does not say
};

/// Keys of config.json. Throws Error(kBadData) with the key, and for what a Transformer here cannot
/// be equal to.
Seq2SeqDescription read_marian_config(const ConfigReader& config);
/// config.json, and generation_config.json: what `generate` forbids and begins with.
std::string write_marian_config(const Seq2SeqDescription& description);
std::string write_marian_generation(const Seq2SeqDescription& description);

/// Why a program of one encoder and one decoder, both Transformers without adapters, cannot express
/// a model; empty when it can.
std::string incompatibility_of_parts(const models::Seq2SeqOptions& model);
/// Why the class of its norms cannot express a model; empty when it can.
std::string marian_incompatibility(const models::Seq2SeqOptions& model);

/// Whether the table of positions is a tensor: MarianMTModel computes the sinusoids of Marian, and
/// reads any other table of a folder. Pegasus has the same table, and always reads it.
bool stores_positions(const models::Seq2SeqOptions& model);

/// Which tables the class computes with, by the names in a folder: without ties, transformers 5
/// reads those of source and target where the folder has them, and not the shared one.
/// Returns the names of tensors that nothing reads then.
std::vector<std::string> choose_marian_tables(const TensorsByName& theirs,
                                              Seq2SeqDescription& description);

/// All names, in both directions, but for the bias of the output (kMarianOutputBias, [1, V]).
std::vector<NamePair> marian_names(const Seq2SeqDescription& description);
/// Tensors that a folder may have a second time, each with ours that it repeats.
std::vector<NamePair> marian_copies(const Seq2SeqDescription& description);

inline constexpr const char* kMarianOutputBias = "final_logits_bias";
inline constexpr const char* kOutputBias = "output.bias";

}  // namespace stretto::interchange
