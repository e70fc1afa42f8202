#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/names.h"
#include "models/causal_transformer_options.h"
#include "text/special_ids.h"

/// Classes of `transformers` that are Transformers of language models: GPT-2's form, and Llama's.
namespace stretto::interchange {

class ConfigReader;
struct CausalClass;

/// The largest values of config.json.
inline constexpr int64_t kMaxCausalSize = 1'000'000, kMaxCausalWidth = 65536,
                         kMaxCausalLayers = 1000, kMaxCausalHeads = 1024,
                         kMaxCausalPositions = 100'000'000;

/// A language model as its folder describes it, beside the weights.
struct CausalDescription {
  const CausalClass* its = nullptr;        ///< of which class the folder is
  models::CausalTransformerOptions model;  ///< all sizes are given
  int64_t vocab_size = 0;                  ///< rows of the table of tokens
};

/// One class: its keys of config.json, its names of tensors, and what it cannot express.
struct CausalClass {
  std::string_view model_type;  ///< config.json says so
  std::string_view name;        ///< "GPT2LMHeadModel"
  std::string_view prefix;      ///< of all names but the output's; GPT-2's folders may lack it
  std::span<const std::string_view> unread;  ///< patterns of names that nothing here reads

  models::CausalTransformerOptions (*read)(const CausalClass& its, const ConfigReader& config);
  void (*write)(const CausalClass& its, const models::CausalTransformerOptions& model,
                nlohmann::ordered_json& config);
  /// Why the class cannot express a model; empty when it can.
  std::string (*incompatibility)(const CausalClass& its,
                                 const models::CausalTransformerOptions& model);
  /// All names but those of the output, with the prefix.
  std::vector<NamePair> (*names)(const models::CausalTransformerOptions& model);
};

extern const CausalClass kGpt2, kLlama, kMistral, kQwen2, kQwen3;

/// All that are known, in the order in which a model looks for one.
std::span<const CausalClass* const> causal_classes();
/// By `model_type`; null when it is not known.
const CausalClass* find_causal_class(std::string_view model_type);

/// config.json of a language model. Throws Error(kBadData) that names the key: for a class that is
/// not known, and for whatever a Transformer here cannot be equal to.
CausalDescription read_causal_config(const ConfigReader& config);
CausalDescription read_causal_config(std::string_view bytes, const std::string& where);
/// config.json of this description, which its class expresses.
/// @param specials  of the tokenizer; ids below 0 are left out
std::string write_causal_config(const CausalDescription& description,
                                const text::SpecialIds& specials);

/// Why a program with a plain output cannot express a model that caps its scores or logits, scales
/// its vectors, or has another output; empty when it can.
std::string incompatibility_of_output(const models::CausalTransformerOptions& model);
/// Why the class cannot express a model; empty when it can.
std::string causal_incompatibility(const CausalClass& its,
                                   const models::CausalTransformerOptions& model);
/// The first class that expresses the model exactly.
/// @param wanted  a model_type, or "auto"
/// Throws Error(kUsage) with the reason of each class that does not.
const CausalClass& choose_causal_class(const models::CausalTransformerOptions& model,
                                       const std::string& wanted);

/// All names of a model, in both directions.
/// @param has_prefix  false: those of a folder whose names have none
std::vector<NamePair> causal_names(const CausalDescription& description, bool has_prefix = true);
/// Tensors that a folder may have a second time, each with ours that it repeats.
std::vector<NamePair> causal_copies(const CausalDescription& description);
/// Whether a tensor of ours has a row for each id of the tokenizer.
bool is_causal_table(const std::string& name);

}  // namespace stretto::interchange
