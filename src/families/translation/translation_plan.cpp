#include "families/translation/translation_plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

#include "experiment/scaled_rate.h"
#include "families/text/model_shapes.h"
#include "families/translation/requests.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

PlannedWork planned_pairs(const Experiment& experiment) {
  const auto& data = translation_of(experiment).data;
  return work_within({.unit = "target tokens",
                      .key = "data.max_tokens",
                      .max_units = data.max_tokens,
                      .max_samples = data.max_samples,
                      .sample_units = std::min(kTokensPerSentence, double(data.max_tgt_tokens))});
}

PlannedTables planned_tables(const Experiment& experiment) {
  const auto& own = translation_of(experiment);
  return {.tokenizer = own.tokenizer,
          .ties_output = own.model.tie_embeddings != "none",
          .d_model = own.model.d_model};
}

// The keys of one part, "model.encoder."; `heads` becomes what d_model has to be a multiple of.
template <class Part>
void add_part_keys(const std::string& prefix, const Part& part, ModelShape& shape, int64_t& heads) {
  int64_t least = 1;  // layers for which a list has entries
  if constexpr (requires { part.kernels; }) least = std::ssize(part.kernels);
  if constexpr (requires { part.channels; }) least = std::max(least, std::ssize(part.channels));
  add_depth(shape, prefix + "num_layers", part.num_layers, least);
  if constexpr (requires { part.ffn_dim; }) add_width(shape, prefix + "ffn_dim", part.ffn_dim, 8);
  if constexpr (requires { part.hidden_dim; }) {
    add_width(shape, prefix + "hidden_dim", part.hidden_dim, 8);
  }
  if constexpr (requires { part.num_heads; }) heads = std::lcm(heads, part.num_heads);
}

// Heads have an even width each, for rotary positions; processors like multiples of eight.
int64_t multiple_of_width(int64_t d_model, int64_t heads) {
  for (const int64_t multiple : {std::lcm(2 * heads, int64_t{8}), 2 * heads}) {
    if (d_model % multiple == 0) return multiple;
  }
  return heads;
}

// Lists of encoders and of heads have keys that no override reaches: their parts stay.
ModelShape shape_of_translation(const Experiment& experiment) {
  const models::Seq2SeqOptions& model = translation_of(experiment).model;
  ModelShape shape;
  int64_t heads = 1;
  const auto count_heads = [&](const auto& part) {
    if constexpr (requires { part.num_heads; }) heads = std::lcm(heads, part.num_heads);
  };
  if (model.encoders.empty()) {
    model.encoder.visit(
        [&](const auto& part) { add_part_keys("model.encoder.", part, shape, heads); });
  }
  for (const auto& encoder : model.encoders) encoder.visit(count_heads);
  if (model.heads.empty()) {
    model.decoder.visit(
        [&](const auto& part) { add_part_keys("model.decoder.", part, shape, heads); });
  }
  for (const auto& head : model.heads) head.decoder.visit(count_heads);
  const int64_t multiple = multiple_of_width(model.d_model, heads);
  for (ShapeKey& key : shape.widths) {  // widths that are one, or its half, stay so
    if (key.value == model.d_model) key.multiple = multiple;
    if (2 * key.value == model.d_model && multiple % 2 == 0) key.multiple = multiple / 2;
  }
  shape.widths.push_back({"model.d_model", model.d_model, multiple});
  shape.fan_in = static_cast<double>(model.d_model);
  return shape;
}

}  // namespace

FamilyPlan translation_plan() {
  const auto gradients = [](const Experiment& e, const TableRows& rows, bool rows_apart) {
    return table_gradients(translation_of(e).model, rows, rows_apart);
  };
  const auto sizes = [](const TableRows& rows) {
    return FamilyValues(tasks::TranslationSizes{.src_rows = rows.input, .tgt_rows = rows.output});
  };
  return {.work = &planned_pairs,
          .tables = TablePlan{.tables = &planned_tables, .gradients = gradients, .sizes = sizes},
          .shape = &shape_of_translation};
}

TableGradients table_gradients(const models::Seq2SeqOptions& model, const TableRows& rows,
                               bool rows_apart) {
  const std::string& tie = model.tie_embeddings;
  const auto encoders = static_cast<int64_t>(models::num_encoders(model));
  const int64_t output = rows.output * models::output_width(model);
  const int64_t encoder = rows.input * model.d_model;
  if (tie == "none") {  // each encoder has a table of its own
    return {.first_parameters = output, .late_parameters = encoders * encoder};
  }
  // A table that is looked up only stays one tensor.
  if (!rows_apart) return {.late_parameters = encoder};
  if (tie == "decoder") {
    return {.first_parameters = output, .late_parameters = encoder, .lookups = 1};
  }
  return {.first_parameters = output, .lookups = 1.0 + double(encoders)};  // each source: as many
}

}  // namespace stretto::experiment
