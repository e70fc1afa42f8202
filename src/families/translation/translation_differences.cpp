#include "families/translation/translation_differences.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "config/schema.h"
#include "experiment/model_comparison.h"
#include "experiment/taken_parts.h"
#include "families/translation/causal_parts.h"
#include "families/translation/translation_options.h"
#include "models/seq2seq_options.h"

namespace stretto::experiment {
namespace {

// An encoder or decoder.
struct Part {
  std::string tensors;  // "encoders.0."
  std::string section;  // "model.encoders.0"
  std::string list;     // "encoder": what it is called without a list
  bool first = true;    // of its list
  bool transformer = false;
  bool scales = false;  // multiplies its token vectors
};

std::vector<Part> parts_of(const models::Seq2SeqOptions& model) {
  std::vector<Part> parts;
  models::each_encoder(model, [&](const auto& encoder, const std::string& section) {
    parts.push_back({.tensors = section.substr(section.find('.') + 1) + ".",
                     .section = section,
                     .list = "encoder",
                     .first = parts.empty(),
                     .transformer = encoder.template is<models::StackOptions>()});
  });
  const auto decoders = models::decoders_of(model);
  for (size_t i = 0; i < decoders.size(); ++i) {
    const bool several = !model.heads.empty();
    parts.push_back({.tensors = several ? "decoders." + model.heads[i].name + "." : "decoder.",
                     .section = models::decoder_section(model, i),
                     .list = "decoder",
                     .first = i == 0,
                     .transformer = decoders[i]->is<models::StackOptions>()});
  }
  const auto kinds = models::embedding_kinds(model);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].scales = kinds[i].scales(model.embedding_scale);
  }
  return parts;
}

// A part of the model that begins, and one that it takes tensors from.
struct Pair {
  Part theirs, own;
  bool layers = true;  // false: the table of tokens alone
};

std::vector<Pair> pairs_of(const std::vector<Part>& theirs, const std::vector<Part>& own,
                           const TakenParts& taken) {
  std::vector<Pair> pairs;
  for (const Part& here : own) {
    for (const Part& there : theirs) {
      if (!taken.takes(here.tensors, there.tensors)) continue;
      pairs.push_back({there, here, taken.takes_layers(here.tensors, there.tensors)});
    }
  }
  return pairs;
}

// A part that reads a table that all parts share has a counterpart there too: the one of its name,
// or the first of a list for a single one.
void add_readers_of_shared_table(const std::vector<Part>& theirs, const std::vector<Part>& own,
                                 std::vector<Pair>& pairs) {
  for (const Part& here : own) {
    if (std::any_of(pairs.begin(), pairs.end(),
                    [&](const Pair& pair) { return pair.own.section == here.section; })) {
      continue;
    }
    const auto is_counterpart = [&](const Part& there) {
      const bool single =
          here.section == "model." + here.list || there.section == "model." + there.list;
      return here.tensors == there.tensors ||
             (single && here.list == there.list && here.first && there.first);
    };
    const auto there = std::find_if(theirs.begin(), theirs.end(), is_counterpart);
    if (there != theirs.end()) pairs.push_back({*there, here, /*layers=*/false});
  }
}

// Whether token vectors are multiplied: one value, or a list where parts differ.
std::string scales_of(const std::vector<Pair>& pairs, Part Pair::*side) {
  std::vector<std::string> scales;
  for (const Pair& pair : pairs) scales.emplace_back((pair.*side).scales ? "sqrt" : "none");
  const bool differ =
      std::adjacent_find(scales.begin(), scales.end(), std::not_equal_to<>()) != scales.end();
  return differ || scales.empty() ? config::value_text(&scales)
                                  : config::value_text(&scales.front());
}

int64_t number_at(const config::Schema& schema, const std::string& key) {
  return std::stoll(config::value_text(schema.find(key)->value));
}

// The first layer of a stack with a residual connection: every number beyond the last layer means
// that there is none.
std::string residual_from(const config::Schema& schema, const std::string& section) {
  return std::to_string(std::min(number_at(schema, section + ".residual_from"),
                                 number_at(schema, section + ".num_layers")));
}

// "num_heads" of "model.encoder.num_heads" in the section "model.encoder"; else nothing.
std::optional<std::string> key_in(const std::string& section, const std::string& key) {
  if (!key.starts_with(section + ".")) return std::nullopt;
  return key.substr(section.size() + 1);
}

// A key of two parts.
void compare_parts(const Pair& pair, const std::string& leaf, ModelComparison& models) {
  const std::string own = pair.own.section + "." + leaf, there = pair.theirs.section + "." + leaf;
  if (models.theirs().find(there) == nullptr) return;
  // A single layer has none above it that could read the context.
  if (leaf == "context_to" && number_at(models.theirs(), pair.theirs.section + ".num_layers") == 1)
    return;
  if (leaf == "residual_from") {
    models.compare_values({.key = own,
                           .theirs = residual_from(models.theirs(), pair.theirs.section),
                           .own = residual_from(models.own(), pair.own.section),
                           .key_there = there});
  } else {
    models.compare(own, there);
  }
}

// Keys of `[model]` count where a Transformer that reads them takes layers of another.
bool pairs_transformers(const std::vector<Pair>& pairs) {
  return std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return pair.layers && pair.theirs.transformer && pair.own.transformer;
  });
}

void compare_key(const std::string& key, const std::vector<Pair>& pairs, bool adapters,
                 ModelComparison& models) {
  if (key.starts_with("model.adapter.")) {
    if (adapters) models.compare(key);
    return;
  }
  if (key.find('.') == key.rfind('.')) {
    if (pairs_transformers(pairs)) models.compare(key);
    return;
  }
  for (const Pair& pair : pairs) {
    const auto leaf = key_in(pair.own.section, key);
    if (leaf && pair.layers) compare_parts(pair, *leaf, models);
  }
}

}  // namespace

std::vector<ModelDifference> translation_differences(const Experiment& theirs,
                                                     const Experiment& own,
                                                     const std::vector<std::string>& stored) {
  if (!theirs.task.is<TranslationOptions>()) {
    return differences_of_language_model(theirs, own, stored);
  }
  const auto &other = translation_of(theirs).model, &model = translation_of(own).model;
  const TakenParts taken(own.train.init_only, stored);
  const auto there = parts_of(other), here = parts_of(model);
  auto pairs = pairs_of(there, here, taken);
  const bool layers =
      std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.layers; });
  const bool adapters = layers && other.adapter.is_on() && model.adapter.is_on();
  ModelComparison models(theirs, own);
  for (const auto& key : models.hidden_keys()) compare_key(key, pairs, adapters, models);
  const bool share = other.tie_embeddings == "all" && model.tie_embeddings == "all";
  if (share && taken.takes("embedding.", "embedding.")) {
    add_readers_of_shared_table(there, here, pairs);
  }
  models.compare_values({.key = "model.embedding_scale",
                         .theirs = scales_of(pairs, &Pair::theirs),
                         .own = scales_of(pairs, &Pair::own),
                         .key_there = "model.embedding_scale"});
  return models.found();
}

}  // namespace stretto::experiment
