#include "families/text/text_plan.h"

#include "base/error.h"
#include "base/log_silence.h"
#include "experiment/task_rules.h"
#include "families/text/encoder_rules.h"
#include "families/text/model_shapes.h"
#include "families/text/requests.h"
#include "families/text/text_rules.h"
#include "families/text/text_size.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
namespace {

bool writes_tokens(const Experiment& experiment) {
  return encoder_rules_of(experiment).predicts_masked_tokens();
}

PlannedWork planned_texts(const Experiment& experiment) {
  const EncoderSections text = encoder_sections(experiment);
  return work_within({.unit = "tokens",
                      .key = "data.max_tokens",
                      .max_units = text.max_tokens,
                      .max_samples = text.max_samples,
                      .sample_units = double(text.max_text_tokens),
                      .sample_note = ", as many as data.max_text_tokens lets in"});
}

PlannedTables planned_table(const Experiment& experiment) {
  const EncoderSections text = encoder_sections(experiment);
  return {.tokenizer = text.tokenizer->tokenizer_options(),
          .ties_output = writes_tokens(experiment) && text.model->tie_embeddings,
          .d_model = text.d_model};
}

ModelShape shape_of_text(const Experiment& experiment) {
  const EncoderSections text = encoder_sections(experiment);
  if (text.causal != nullptr) return shape_of_model(models::causal_stack_of(*text.causal));
  return shape_of_model(*text.model);
}

}  // namespace

std::optional<int64_t> ids_of_text(const Experiment& experiment) {
  const TextSections text = text_sections(experiment);
  const auto options = text.tokenizer->tokenizer_options();
  if (options.type != "char" && options.type != "word") return std::nullopt;
  if (text::names_tokenizer(options) || takes_tokenizer_of_other_run(experiment)) {
    return std::nullopt;
  }
  const auto bytes = plain_bytes(*text.train);
  if (!bytes || *bytes == 0 || *bytes > kMostPlannedBytes) return std::nullopt;
  const log::Silence silence;
  try {
    const auto lines = text_rules_of(experiment).training_text(experiment);
    const auto tokenizers = text::make_tokenizers(
        options, static_cast<uint64_t>(experiment.run.seed), lines.get(), nullptr);
    return tokenizers.src->size();
  } catch (const Error&) {
    return std::nullopt;  // `check` says what is wrong with the text
  }
}

FamilyPlan text_plan() {
  const auto gradients = [](const Experiment& e, const TableRows& rows, bool rows_apart) {
    const EncoderSections text = encoder_sections(e);
    if (text.causal != nullptr) {
      return TableGradients{.late_parameters = rows.output * text.d_model};
    }
    return text_table_gradients(*text.model, rows.output, writes_tokens(e), rows_apart);
  };
  const auto sizes = [](const TableRows& rows) {
    return FamilyValues(tasks::TextSizes{.rows = rows.output});
  };
  return {.work = &planned_texts,
          .tables = TablePlan{.tables = &planned_table,
                              .gradients = gradients,
                              .sizes = sizes,
                              .ids_of_text = &ids_of_text},
          .shape = &shape_of_text};
}

TableGradients text_table_gradients(const models::BertOptions& model, int64_t rows, bool has_output,
                                    bool rows_apart) {
  const int64_t table = rows * models::sizes_of(model).d_model;
  if (!has_output) return {.late_parameters = table};
  if (!model.tie_embeddings) return {.first_parameters = table, .late_parameters = table};
  if (!rows_apart) return {.late_parameters = table};
  return {.first_parameters = table, .lookups = 1};
}

}  // namespace stretto::experiment
