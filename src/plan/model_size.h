#pragma once

#include <cstdint>

#include "models/seq2seq_options.h"

namespace stretto::plan {

/// Rows of the embedding tables, already rounded up to tokenizer.vocab_multiple.
struct TableRows {
  int64_t src = 0, tgt = 0;
};

/// What a model weighs and costs, in closed form.
///
/// d width, f inner width of the feed-forward part, E and D layers, V rows:
///
///     attention      4 d^2 + 4 d               projections with biases
///     feed-forward   2 d f + f + d             swiglu: 3 d f, no biases
///     layer norm     2 d                       2 in an encoder layer, 3 in a decoder layer,
///                                              1 more for each stack unless model.norm = "post"
///     tables         V d                       tied: all 1, decoder 2, none 3
///     learned        model.max_positions d     for each stack
struct ModelSize {
  int64_t parameters = 0;
};
ModelSize model_size(const models::Seq2SeqOptions& model, const TableRows& rows);

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

/// Different rows that `lookups` lookups meet in a table of `rows` rows: 4 lookups^0.7, and never
/// more than there are. Micro-batches of 1,000 to 8,000 tokens a side of Multi30k, with a joint
/// vocabulary of 8,000, have 0.87 to 0.98 times as many.
double different_rows(double lookups, int64_t rows);

/// Mean lengths of the sentences that a model trains on, in tokens.
struct Lengths {
  double src = 30, tgt = 30;
};

/// Floating-point operations of forward and backward for one target token, its share of the source
/// included: six for each weight that a token meets (a multiplication and an addition, once forward
/// and twice backward), and 12 d n for attention over n tokens, in each layer.
double training_flops_per_token(const models::Seq2SeqOptions& model, const TableRows& rows,
                                const Lengths& lengths = {});

}  // namespace stretto::plan
