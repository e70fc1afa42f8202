#include "families/translation/translation_plan.h"

#include <algorithm>
#include <string>

#include "experiment/scaled_rate.h"
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

}  // namespace

FamilyPlan translation_plan() {
  const auto gradients = [](const Experiment& e, const TableRows& rows, bool rows_apart) {
    return table_gradients(translation_of(e).model, rows, rows_apart);
  };
  const auto sizes = [](const TableRows& rows) {
    return FamilyValues(tasks::TranslationSizes{.src_rows = rows.input, .tgt_rows = rows.output});
  };
  return {.work = &planned_pairs,
          .tables = TablePlan{.tables = &planned_tables, .gradients = gradients, .sizes = sizes}};
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
