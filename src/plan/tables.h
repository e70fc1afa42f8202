#pragma once

#include <cstdint>

#include "models/bert_options.h"
#include "models/seq2seq_options.h"

namespace stretto::plan {

/// Rows of the embedding tables, already rounded up to tokenizer.vocab_multiple.
struct TableRows {
  int64_t src = 0, tgt = 0;
};

/// When the gradients of tables are ready. The rest is ready evenly over backward.
///
/// The output projection's is ready when backward begins, since its operator makes it with the
/// loss; but what is looked up in the same table is added later, and with tied embeddings that is
/// at the end. Where looked-up rows are summed apart (parallel/embedding_gradients.h: on a CPU,
/// with all_reduce and overlap) the dense part need not wait for them.
struct TableGradients {
  int64_t first_parameters = 0, late_parameters = 0;
  double lookups = 0;  ///< in tables whose rows are summed apart, for one target token
};
TableGradients table_gradients(const models::Seq2SeqOptions& model, const TableRows& rows,
                               bool rows_apart);

/// The same of an encoder of text: one table, whose lookups are ready at the end, and of a masked
/// language model the output projection, a table of its own or the same.
TableGradients text_table_gradients(const models::BertOptions& model, int64_t rows, bool has_output,
                                    bool rows_apart);

/// Different rows that `lookups` lookups meet in a table of `rows` rows: 4 lookups^0.7, and never
/// more than there are. Micro-batches of 1,000 to 8,000 tokens a side of Multi30k, with a joint
/// vocabulary of 8,000, have 0.87 to 0.98 times as many.
double different_rows(double lookups, int64_t rows);

}  // namespace stretto::plan
