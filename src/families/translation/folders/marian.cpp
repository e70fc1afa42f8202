// Marian's Transformer (Junczys-Dowmunt et al. 2018, arXiv:1804.00344) as MarianMTModel has it.
#include "families/translation/folders/marian.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/text.h"
#include "interchange/config_reader.h"
#include "interchange/incompatibility.h"

namespace stretto::interchange {
namespace {

constexpr int64_t kMaxMarianSize = 1'000'000;
constexpr int64_t kMaxMarianVocabulary = 100'000'000;
constexpr int64_t kMaxMarianLayers = 1000;
constexpr int64_t kMaxMarianHeads = 1024;
constexpr int64_t kMaxMarianWidth = 65536;
constexpr int64_t kMaxBeam = 1000;

constexpr std::array kMarianEncoder{
    NameRow{"model.encoder.layers.*.self_attn.{q_proj,k_proj,v_proj}",
            "encoder.layers.*.self_attention.qkv"},
    NameRow{"model.encoder.layers.*.self_attn.out_proj", "encoder.layers.*.self_attention.out"},
    NameRow{"model.encoder.layers.*.self_attn_layer_norm", "encoder.layers.*.self_residual.norm"},
    NameRow{"model.encoder.layers.*.fc1", "encoder.layers.*.ffn.up"},
    NameRow{"model.encoder.layers.*.fc2", "encoder.layers.*.ffn.down"},
    NameRow{"model.encoder.layers.*.final_layer_norm", "encoder.layers.*.ffn_residual.norm"},
};
constexpr std::array kMarianDecoder{
    NameRow{"model.decoder.layers.*.self_attn.{q_proj,k_proj,v_proj}",
            "decoder.layers.*.self_attention.qkv"},
    NameRow{"model.decoder.layers.*.self_attn.out_proj", "decoder.layers.*.self_attention.out"},
    NameRow{"model.decoder.layers.*.self_attn_layer_norm", "decoder.layers.*.self_residual.norm"},
    NameRow{"model.decoder.layers.*.encoder_attn.q_proj", "decoder.layers.*.cross_attention.q"},
    NameRow{"model.decoder.layers.*.encoder_attn.{k_proj,v_proj}",
            "decoder.layers.*.cross_attention.kv"},
    NameRow{"model.decoder.layers.*.encoder_attn.out_proj", "decoder.layers.*.cross_attention.out"},
    NameRow{"model.decoder.layers.*.encoder_attn_layer_norm",
            "decoder.layers.*.cross_residual.norm"},
    NameRow{"model.decoder.layers.*.fc1", "decoder.layers.*.ffn.up"},
    NameRow{"model.decoder.layers.*.fc2", "decoder.layers.*.ffn.down"},
    NameRow{"model.decoder.layers.*.final_layer_norm", "decoder.layers.*.ffn_residual.norm"},
};
constexpr std::array kMarianPositions{
    NameRow{"model.encoder.embed_positions.weight", "encoder.positions.weight", Parts::kWhole},
    NameRow{"model.decoder.embed_positions.weight", "decoder.positions.weight", Parts::kWhole},
};
constexpr const char *kSharedTable = "model.shared.weight",
                     *kSourceTable = "model.encoder.embed_tokens.weight",
                     *kTargetTable = "model.decoder.embed_tokens.weight",
                     *kOutputTable = "lm_head.weight";

struct MarianActivation {
  std::string_view theirs, ours;
};
// The first of each of ours is the one that is written.
constexpr std::array<MarianActivation, 8> kMarianActivations{{{"relu", "relu"},
                                                              {"swish", "silu"},
                                                              {"silu", "silu"},
                                                              {"gelu", "gelu"},
                                                              {"gelu_new", "gelu_tanh"},
                                                              {"gelu_pytorch_tanh", "gelu_tanh"},
                                                              {"gelu_fast", "gelu_tanh"},
                                                              {"gelu_python", "gelu"}}};

std::string read_marian_activation(const ConfigReader& config) {
  const std::string name = config.text("activation_function", "gelu");
  for (const auto& known : kMarianActivations) {
    if (known.theirs == name) return std::string(known.ours);
  }
  config.refuse("activation_function",
                "is `" + printable(name) + "`; relu, swish, gelu and gelu_new are known");
}

// Marian has layers that MarianMTModel does not: a folder that asks for them was never equivalent.
void refuse_other_layers(const ConfigReader& config, std::string_view norm) {
  struct Refused {
    const char* key;
    const char* what;
  };
  constexpr std::array<Refused, 5> kRefused{{
      {"normalize_embedding", "the class has no norm behind its embeddings"},
      {"tie_encoder_decoder", "encoder and decoder have layers of their own here"},
      {"add_bias_logits", "final_logits_bias is the bias that the class adds"},
      // For Marian alone:
      {"normalize_before", "the norms of MarianMTModel stand behind the sums"},
      {"add_final_layer_norm", "MarianMTModel has no norm behind its last layer"},
  }};
  constexpr size_t kOfMarianAlone = 2;
  const size_t count = kRefused.size() - (norm == "pre" ? kOfMarianAlone : 0);
  for (const auto& refused : std::span(kRefused).first(count)) {
    if (config.flag(refused.key, false)) {
      config.refuse(refused.key, std::string("is true: ") + refused.what);
    }
  }
  if (!config.flag("is_encoder_decoder", true)) {
    config.refuse("is_encoder_decoder", "is false: a translation model has both");
  }
}

models::StackOptions read_stack(const ConfigReader& config, const std::string& side,
                                int64_t d_model) {
  const auto key = [&](const char* ending) { return side + ending; };
  const models::StackOptions stack{
      .num_layers = config.integer(key("_layers").c_str(), 12, 1, kMaxMarianLayers),
      .num_heads = config.integer(key("_attention_heads").c_str(), 16, 1, kMaxMarianHeads),
      .ffn_dim = config.integer(key("_ffn_dim").c_str(), 4096, 1, kMaxMarianSize),
      .layer_drop = config.number(key("_layerdrop").c_str(), 0)};
  require_whole_heads(config, key("_attention_heads"), stack.num_heads, "d_model", d_model);
  return stack;
}

std::string ties_of(const ConfigReader& config, bool shares) {
  if (!config.flag("tie_word_embeddings", true)) return "none";
  return shares ? "all" : "decoder";
}

text::SpecialIds read_specials(const ConfigReader& config, int64_t vocab_size) {
  const auto id = [&](const char* key) { return config.integer(key, 0, vocab_size - 1); };
  return {
      .pad = id("pad_token_id"), .bos = id("decoder_start_token_id"), .eos = id("eos_token_id")};
}

const models::StackOptions& encoder_stack(const models::Seq2SeqOptions& model) {
  return model.encoder.as<models::StackOptions>();
}
const models::StackOptions& decoder_stack(const models::Seq2SeqOptions& model) {
  return model.decoder.as<models::StackOptions>();
}

std::string incompatibility_of_stack(const models::StackOptions& stack,
                                     const std::string& section) {
  if (stack.head_dim > 0) {
    return section + ".head_dim = " + std::to_string(stack.head_dim) +
           ": its heads have d_model / num_heads columns each";
  }
  if (stack.num_kv_heads == 0 || stack.num_kv_heads == stack.num_heads) return "";
  return section + ".num_kv_heads = " + std::to_string(stack.num_kv_heads) +
         ": each of its heads has keys of its own";
}

std::string incompatibility_of_layers(const models::Seq2SeqOptions& model) {
  const MarianClass& its = marian_class(model);
  if (model.norm != its.norm) {
    return "model.norm = \"" + model.norm + "\": its norms stand behind the sums";
  }
  if (its.norm == "pre" && model.tie_embeddings != "all") {
    return "model.tie_embeddings = \"" + model.tie_embeddings +
           "\" with norm = \"pre\": its tables of source and target are one";
  }
  if (model.norm_layer != "layer_norm") {
    return "model.norm_layer = \"" + model.norm_layer + "\": it has layer norms";
  }
  if (model.parallel_residual) return "model.parallel_residual = true: its parts follow each other";
  if (model.activation == "swiglu") {
    return "model.activation = \"swiglu\": its feed-forward parts have no gate";
  }
  if (model.positions != "marian" && model.positions != "sinusoidal" &&
      model.positions != "learned") {
    return "model.positions = \"" + model.positions + "\": it adds a vector to each embedding";
  }
  return "";
}

constexpr std::array kPegasusNorms{
    NameRow{"model.encoder.layer_norm", "encoder.final_norm"},
    NameRow{"model.decoder.layer_norm", "decoder.final_norm"},
};

NamePair marian_name(const char* theirs, const char* ours) {
  return {.theirs = {theirs}, .ours = ours};
}

}  // namespace

const MarianClass* find_marian_class(std::string_view model_type) {
  const auto* found =
      std::find_if(kMarianClasses.begin(), kMarianClasses.end(),
                   [&](const MarianClass& known) { return known.model_type == model_type; });
  return found == kMarianClasses.end() ? nullptr : found;
}

const MarianClass& read_marian_class(const ConfigReader& config) {
  const auto* found = find_marian_class(config.text("model_type", ""));
  if (found == nullptr) config.refuse("model_type", "is neither marian nor pegasus");
  return *found;
}

const MarianClass& marian_class(const models::Seq2SeqOptions& model) {
  const auto* found = std::find_if(kMarianClasses.begin(), kMarianClasses.end(),
                                   [&](const MarianClass& one) { return one.norm == model.norm; });
  return found == kMarianClasses.end() ? kMarianClasses.front() : *found;
}

Seq2SeqDescription read_marian_config(const ConfigReader& config) {
  const MarianClass& its = read_marian_class(config);
  refuse_other_layers(config, its.norm);
  Seq2SeqDescription description;
  auto& model = description.model;
  model.norm = its.norm;
  model.d_model = config.integer("d_model", 1024, 2, kMaxMarianWidth);
  model.encoder = read_stack(config, "encoder", model.d_model);
  model.decoder = read_stack(config, "decoder", model.d_model);
  model.activation = read_marian_activation(config);
  model.positions = "marian";
  model.max_positions = config.integer("max_position_embeddings", 1024, 1, kMaxMarianSize);
  model.embedding_scale = config.flag("scale_embedding", false) ? "sqrt" : "none";
  model.dropout = config.number("dropout", 0.1);
  model.attention_dropout = config.number("attention_dropout", 0);
  model.activation_dropout = config.number("activation_dropout", 0);
  description.shares_tables =
      its.norm == "pre" || config.flag("share_encoder_decoder_embeddings", true);
  model.tie_embeddings = ties_of(config, description.shares_tables);
  description.vocab_size = config.integer("vocab_size", 58101, 1, kMaxMarianVocabulary);
  if (config.integer("decoder_vocab_size", description.vocab_size, 1, kMaxMarianVocabulary) !=
      description.vocab_size) {
    config.refuse("decoder_vocab_size",
                  "is not `vocab_size`: MarianMTModel gives both tables the same rows");
  }
  description.specials = read_specials(config, description.vocab_size);
  description.beam_size = config.integer("num_beams", 0, 0, kMaxBeam);
  return description;
}

std::string write_marian_config(const Seq2SeqDescription& description) {
  const auto& model = description.model;
  const auto &encoder = encoder_stack(model), &decoder = decoder_stack(model);
  std::string activation;
  for (const auto& known : kMarianActivations) {
    if (known.ours != model.activation) continue;
    activation = known.theirs;
    break;
  }
  const nlohmann::ordered_json config{
      {"architectures", {marian_class(model).name}},
      {"model_type", marian_class(model).model_type},
      {"vocab_size", description.vocab_size},
      {"decoder_vocab_size", description.vocab_size},
      {"d_model", model.d_model},
      {"encoder_layers", encoder.num_layers},
      {"encoder_attention_heads", encoder.num_heads},
      {"encoder_ffn_dim", encoder.ffn_dim},
      {"encoder_layerdrop", encoder.layer_drop},
      {"decoder_layers", decoder.num_layers},
      {"decoder_attention_heads", decoder.num_heads},
      {"decoder_ffn_dim", decoder.ffn_dim},
      {"decoder_layerdrop", decoder.layer_drop},
      {"num_hidden_layers", encoder.num_layers},
      {"activation_function", activation},
      {"max_position_embeddings", model.max_positions},
      {"scale_embedding", model.embedding_scale != "none"},
      {"dropout", model.dropout},
      {"attention_dropout", model.attention_dropout},
      {"activation_dropout", model.activation_dropout},
      {"share_encoder_decoder_embeddings", description.shares_tables},
      {"tie_word_embeddings", model.tie_embeddings != "none"},
      {"is_encoder_decoder", true},
      {"pad_token_id", description.specials.pad},
      {"eos_token_id", description.specials.eos},
      {"decoder_start_token_id", description.specials.bos},
      {"forced_eos_token_id", description.specials.eos},
      {"torch_dtype", "float32"}};
  return config.dump(2) + "\n";
}

std::string write_marian_generation(const Seq2SeqDescription& description) {
  const auto& specials = description.specials;
  auto never = nlohmann::ordered_json::array({{specials.pad}});
  if (specials.bos != specials.pad && specials.bos != specials.eos) {
    never.push_back({specials.bos});
  }
  nlohmann::ordered_json config{{"pad_token_id", specials.pad},
                                {"eos_token_id", specials.eos},
                                {"decoder_start_token_id", specials.bos},
                                {"forced_eos_token_id", specials.eos},
                                {"bad_words_ids", never},
                                {"max_length", description.model.max_positions}};
  if (description.beam_size > 0) config["num_beams"] = description.beam_size;
  return config.dump(2) + "\n";
}

std::string incompatibility_of_parts(const models::Seq2SeqOptions& model) {
  if (model.adapter.is_on()) return adapter_incompatibility(model.adapter);
  if (models::has_two_encoders(model)) return "model.encoders: it has one encoder";
  if (!model.heads.empty()) return "model.heads: it has one decoder";
  if (!model.encoder.is<models::StackOptions>()) {
    return "model.encoder.name = \"" + model.encoder.name() + "\": its encoder is a Transformer";
  }
  if (!model.decoder.is<models::StackOptions>()) {
    return "model.decoder.name = \"" + model.decoder.name() + "\": its decoder is a Transformer";
  }
  return "";
}

std::string marian_incompatibility(const models::Seq2SeqOptions& model) {
  if (auto incompatibility = incompatibility_of_parts(model); !incompatibility.empty()) {
    return incompatibility;
  }
  if (auto incompatibility = incompatibility_of_layers(model); !incompatibility.empty())
    return incompatibility;
  if (auto incompatibility = incompatibility_of_stack(encoder_stack(model), "model.encoder");
      !incompatibility.empty()) {
    return incompatibility;
  }
  return incompatibility_of_stack(decoder_stack(model), "model.decoder");
}

bool stores_positions(const models::Seq2SeqOptions& model) {
  return model.positions != "marian" || model.norm == "pre";
}

std::vector<std::string> choose_marian_tables(const TensorsByName& theirs,
                                              Seq2SeqDescription& description) {
  description.has_side_tables = description.shares_tables &&
                                description.model.tie_embeddings == "none" &&
                                theirs.contains(kSourceTable) && theirs.contains(kTargetTable);
  if (!description.has_side_tables) return {};
  return {kSharedTable};
}

std::vector<NamePair> marian_names(const Seq2SeqDescription& description) {
  const auto& model = description.model;
  const bool reads_shared = description.shares_tables && !description.has_side_tables;
  std::vector<NamePair> names;
  if (model.tie_embeddings == "all") {
    names.push_back(marian_name(kSharedTable, "embedding.weight"));
  } else {
    names.push_back(
        marian_name(reads_shared ? kSharedTable : kSourceTable, "encoder.embedding.weight"));
    names.push_back(
        marian_name(reads_shared ? kSharedTable : kTargetTable, "decoder.embedding.weight"));
    if (model.tie_embeddings == "none") names.push_back(marian_name(kOutputTable, "output.weight"));
  }
  const auto add = [&](std::span<const NameRow> rows, int64_t layers) {
    for (auto& pair : expand(rows, layers)) names.push_back(std::move(pair));
  };
  if (stores_positions(model)) add(kMarianPositions, 0);
  if (model.norm == "pre") add(kPegasusNorms, 0);
  add(kMarianEncoder, encoder_stack(model).num_layers);
  add(kMarianDecoder, decoder_stack(model).num_layers);
  return names;
}

std::vector<NamePair> marian_copies(const Seq2SeqDescription& description) {
  const std::string& ties = description.model.tie_embeddings;
  const char* target = ties == "all" ? "embedding.weight" : "decoder.embedding.weight";
  std::vector<NamePair> copies;
  if (description.shares_tables && !description.has_side_tables) {
    copies.push_back(marian_name(kSourceTable, target));
    copies.push_back(marian_name(kTargetTable, target));
  }
  if (ties != "none") copies.push_back(marian_name(kOutputTable, target));
  return copies;
}

}  // namespace stretto::interchange
