#pragma once

#include <cstdint>

#include "kernels/compute.h"

/// Loops of recurrent layers on raw fp32 pointers (cells.inc, attend.inc), one row of one step at a
/// time: a part of cpu::Table. No result depends on which rows are done together.
namespace stretto::kernels::cpu {

struct Drop;

/// What kNormLstm has besides.
struct CellNorm {
  const float *product_gain, *product_bias;  ///< [4 * width]
  const float *cell_gain, *cell_bias;        ///< [width]
  float epsilon;
};

/// One row of one step of a cell with `width` units and G gates. Rows that are written are other
/// memory than rows that are read, but `gates` may be x.
struct CellRow {
  const float* x;        ///< [G * width], of the input
  const float* product;  ///< [G * width], of h_before
  const float* context;  ///< [G * width], of the context; null: none
  const float *h_before, *c_before;
  float *h, *c;    ///< [width]
  float* gates;    ///< [G * width]: the gates' values
  float* kept;     ///< GRU: n's part of the product [width]; kNormLstm: the normed one [4 * width]
  float* inverse;  ///< kNormLstm: 1 / deviation of the product
  const CellNorm* norm;
  int64_t width;
};

/// The same row in backward.
struct CellSlopes {
  float* gates;  ///< in: the gates' values; out: the slopes of x
  float* kept;   ///< in: as above; out: GRU: the slope of n's product; kNormLstm: the terms of the
                 ///< gradient of product_gain
  const float *h_before, *c_before;
  float* dh;             ///< in: the slope of h; out (GRU): what goes to h_before past the product
  float* dc;             ///< in: the slope of c; out: that of c_before
  float* inner;          ///< out [G * width]: the slope of the product
  const float* inverse;  ///< kNormLstm
  float *gain_terms,
      *bias_terms;  ///< kNormLstm, out [width]: terms of the gradients of the cell's norm
  const CellNorm* norm;
  int64_t width;
};

/// The query of one row against the memory of its sequence.
struct AttendRow {
  const float* query;   ///< [width]
  const float* keys;    ///< [count, width]
  const float* powers;  ///< additive: exp(2 keys); null: the score is a product
  const float* peaks;   ///< additive [count]: the largest |key| of each row
  const float* values;  ///< [count, value_width]
  const float* score;   ///< additive: v [width]
  float gain;           ///< of a product
  int64_t count, width, value_width;
  Compute compute;  ///< weights are rounded before their product with the values
  float* weights;   ///< [count]; forward writes, backward reads
};

struct AttendSlopes {
  const float* dcontext;  ///< [value_width], rounded
  float* dquery;          ///< [width]
  float* dscores;  ///< [count]: slopes of the scores, rounded if they are factors of a product
  float* dkeys;    ///< additive [count, width]: what this row brings is added
  float* dscore;   ///< additive [width]: the same
  float* dgain;    ///< product: the same
  const float* dweights = nullptr;  ///< [count]: slopes of the weights themselves; null: none
};

/// What the weights of a row's step before, and their sum over all steps before, add to the keys of
/// its sequence (AttentiveWeights::location). Both have kernel / 2 zeroes at either end.
struct LocateRow {
  const float *last, *sum;  ///< [count + kernel - 1]
  const float* filters;     ///< [2 * kernel, width]: those of `last`, then those of `sum`
  const float* keys;        ///< [count, width]
  int64_t count, width, kernel;
  float* out;  ///< [count, width]
};

struct LocateSlopes {
  const float* dout;       ///< [count, width]
  const float* transpose;  ///< of the filters: [width, 2, padded], zeroes behind the kernel
  int64_t padded;          ///< the kernel rounded up to sixteen
  float* scratch;          ///< [count, padded]
  float* dfilters;         ///< [2 * kernel, width]: what this row brings is added
  float *dlast, *dsum;     ///< [count + kernel - 1]: the same
};

/// out [rows, columns] = A^T B of a stretch of rows of one sequence.
struct BlendItem {
  const float* a;  ///< [depth, rows]
  const float* b;  ///< [depth, columns]
  int64_t rows, depth, columns;
  float* out;
};

struct Cells {
  void (*lstm)(const CellRow& row);
  void (*lstm_backward)(const CellSlopes& row);
  void (*gru)(const CellRow& row);
  void (*gru_backward)(const CellSlopes& row);
  void (*norm_lstm)(const CellRow& row);
  void (*norm_lstm_backward)(const CellSlopes& row);
  /// now = keep before + (1 - keep) now
  void (*zoneout)(const float* keep, const float* before, float* now, int64_t width);
  /// past = keep slope, slope = (1 - keep) slope
  void (*zoneout_backward)(const float* keep, float* slope, float* past, int64_t width);
  /// to = a + b
  void (*sum)(const float* a, const float* b, float* to, int64_t width);
  /// to += from
  void (*add)(const float* from, float* to, int64_t width);
  /// to = round(from * mask); a null mask is ones.
  void (*operand)(const float* from, const float* mask, float* to, int64_t width, Compute compute);
  /// The factors of dropout of one row, or (`kept`) 1 where dropout would zero and 0 elsewhere.
  void (*mask)(const Drop& drop, int64_t row, bool kept, float* out, int64_t width);
  /// powers = exp(2 keys) and peak = max |keys| of rows [begin, end).
  void (*powers)(const float* keys, float* powers, float* peaks, int64_t begin, int64_t end,
                 int64_t width);
  void (*attend)(const AttendRow& row, float* context);
  void (*attend_backward)(const AttendRow& row, const AttendSlopes& slopes);
  void (*blend)(const BlendItem& item);
  void (*locate)(const LocateRow& row);
  void (*locate_backward)(const LocateRow& row, const LocateSlopes& slopes);
};

}  // namespace stretto::kernels::cpu
