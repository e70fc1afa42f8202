#include "plan/tables.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace stretto::plan {

TableGradients table_gradients(const models::Seq2SeqOptions& model, const TableRows& rows,
                               bool rows_apart) {
  const std::string& tie = model.tie_embeddings;
  const auto encoders = static_cast<int64_t>(models::num_encoders(model));
  const int64_t output = rows.tgt * models::output_width(model);
  const int64_t encoder = rows.src * model.d_model;
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

TableGradients text_table_gradients(const models::BertOptions& model, int64_t rows, bool has_output,
                                    bool rows_apart) {
  const int64_t table = rows * models::sizes_of(model).d_model;
  if (!has_output) return {.late_parameters = table};
  if (!model.tie_embeddings) return {.first_parameters = table, .late_parameters = table};
  if (!rows_apart) return {.late_parameters = table};
  return {.first_parameters = table, .lookups = 1};
}

double different_rows(double lookups, int64_t rows) {
  return std::min({4 * std::pow(lookups, 0.7), lookups, double(rows)});
}

}  // namespace stretto::plan
