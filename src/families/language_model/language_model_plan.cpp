#include "families/language_model/language_model_plan.h"

#include "families/language_model/language_model_rules.h"
#include "families/text/model_shapes.h"
#include "families/text/requests.h"
#include "families/text/text_plan.h"

namespace stretto::experiment {
namespace {

PlannedWork planned_tokens(const Experiment& experiment) {
  const LanguageModelOptions& own = language_model_sections(experiment);
  if (models::carries_state(own.model)) {
    return {.units = static_cast<double>(micro_batch_tokens(experiment)),
            .assumed = "each lane has a stretch of data.bptt"};
  }
  return work_within({.unit = "tokens",
                      .key = "data.max_tokens",
                      .max_units = own.data.max_tokens,
                      .max_samples = own.data.max_samples,
                      .sample_units = static_cast<double>(own.data.max_text_tokens),
                      .sample_note = ", as many as data.max_text_tokens lets in"});
}

PlannedTables language_tables(const Experiment& experiment) {
  const LanguageModelOptions& own = language_model_sections(experiment);
  return {.tokenizer = own.tokenizer.tokenizer_options(),
          .ties_output = models::ties_output(own.model),
          .d_model = models::d_model_of(own.model)};
}

// The gradient of the output projection is ready first, and that of lookups at the end.
TableGradients language_gradients(const Experiment& experiment, const TableRows& rows,
                                  bool rows_apart) {
  const auto& model = language_model_sections(experiment).model;
  const int64_t width = models::d_model_of(model), table = rows.output * width;
  const models::AdaptiveOptions& groups = models::adaptive_softmax_of(model);
  const bool is_divided = groups.is_on() && groups.problem(rows.output).empty();
  const int64_t output = is_divided ? groups.num_parameters(width, rows.output) : table;
  if (!models::ties_output(model)) return {.first_parameters = output, .late_parameters = table};
  if (!rows_apart) return {.late_parameters = table};
  return {.first_parameters = table, .lookups = 1};
}

ModelShape shape_of_language_model(const Experiment& experiment) {
  return shape_of_model(language_model_sections(experiment).model);
}

FamilyValues language_sizes(const TableRows& rows) {
  return FamilyValues(tasks::TextSizes{.rows = rows.output});
}

}  // namespace

FamilyPlan language_model_plan() {
  return {.work = &planned_tokens,
          .tables = TablePlan{.tables = &language_tables,
                              .gradients = &language_gradients,
                              .sizes = &language_sizes,
                              .ids_of_text = &ids_of_text},
          .shape = &shape_of_language_model};
}

}  // namespace stretto::experiment
