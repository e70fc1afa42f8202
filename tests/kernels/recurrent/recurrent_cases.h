#pragma once

#include <ATen/Parallel.h>

#include <string>
#include <vector>

#include "kernels/recurrent/attentive.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/reference.h"
#include "kernels/recurrent/schedule.h"
#include "tests/kernels/cases.h"

/// Recurrent layers as cases: every cell, direction and way of dropping, with initial states and
/// slopes of the last ones, and every attention.
namespace stretto::kernels::cases {

/// So many threads, and bundles if not 0, for as long as this lives.
class Team {
 public:
  explicit Team(int threads, int64_t bundles = 0) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
    force_bundles(bundles);
  }
  ~Team() {
    at::set_num_threads(before_);
    force_bundles(0);
  }

 private:
  int before_;
};

inline const char* name_of(Cell cell) {
  if (cell == Cell::kGru) return "GRU";
  return cell == Cell::kLstm ? "LSTM" : "normed LSTM";
}

inline Dropout drawn(double p, uint64_t key, int64_t rows) {
  return {.p = p, .key = key, .row_keys = at::arange(rows, at::kLong) * 7919 - 3};
}

/// What may be switched on besides.
enum class Extra { kNone, kZoneout, kExpectedZoneout, kRecurrentDropout, kAll };

inline Recurrent layer(Cell cell, const std::vector<int>& bounds, bool reverse, Extra extra) {
  Recurrent options{.cell = {.cell = cell}, .offsets = lengths(bounds), .reverse = reverse};
  const int64_t rows = bounds.back(), batch = static_cast<int64_t>(bounds.size()) - 1;
  if (extra != Extra::kNone && extra != Extra::kRecurrentDropout) {
    options.cell.zoneout.hidden = drawn(0.25, 0x111, rows);
    if (cell != Cell::kGru) options.cell.zoneout.cell = drawn(0.4, 0x222, rows);
    options.cell.zoneout.expected = extra == Extra::kExpectedZoneout;
  }
  if (extra == Extra::kRecurrentDropout || extra == Extra::kAll)
    options.recurrent_dropout = drawn(0.3, 0x333, batch);
  return options;
}

/// The weights of a cell with `width` units, then its initial state.
inline testing::Inputs cell_inputs(Cell cell, int64_t width, int64_t batch) {
  using testing::noise;
  const int64_t all = gates_of(cell) * width;
  testing::Inputs in{noise({all, width}, 21) / std::sqrt(static_cast<double>(width)),
                     noise({batch, width}, 22) * 0.5};
  if (cell != Cell::kGru) in.push_back(noise({batch, width}, 23) * 0.5);
  if (cell == Cell::kGru) in.push_back(noise({all}, 24) * 0.5);
  if (cell != Cell::kNormLstm) return in;
  in.push_back(1 + 0.2 * noise({all}, 25));
  in.push_back(0.2 * noise({all}, 26));
  in.push_back(1 + 0.2 * noise({width}, 27));
  in.push_back(0.2 * noise({width}, 28));
  return in;
}

struct CellInputs {
  RecurrentWeights weights;
  RecurrentState state;
};

/// Inputs [begin, …) as cell_inputs made them.
inline CellInputs cell_of(const testing::Inputs& in, size_t begin, Cell cell) {
  CellInputs made{.weights = {.hidden = in[begin]}, .state = {.h = in[begin + 1], .c = {}}};
  if (cell == Cell::kGru)
    made.weights.hidden_bias = in[begin + 2];
  else
    made.state.c = in[begin + 2];
  if (cell != Cell::kNormLstm) return made;
  made.weights.product_gain = in[begin + 3];
  made.weights.product_bias = in[begin + 4];
  made.weights.cell_gain = in[begin + 5];
  made.weights.cell_bias = in[begin + 6];
  return made;
}

/// All outputs in one, so that each has a slope.
inline at::Tensor joined(const RecurrentOutput& out) {
  std::vector<at::Tensor> all{out.h.flatten(), out.last.h.flatten()};
  if (out.last.c.defined()) all.push_back(out.last.c.flatten());
  return at::cat(all);
}

inline Case recurrent_case(Cell cell, int64_t width, const std::vector<int>& bounds, bool reverse,
                           Extra extra) {
  using testing::noise;
  const Recurrent options = layer(cell, bounds, reverse, extra);
  const int64_t batch = static_cast<int64_t>(bounds.size()) - 1;
  testing::Inputs inputs{noise({bounds.back(), gates_of(cell) * width})};
  for (const at::Tensor& x : cell_inputs(cell, width, batch)) inputs.push_back(x);
  return make(
      std::string(name_of(cell)) + (reverse ? " reversed" : "") + " extra " +
          std::to_string(static_cast<int>(extra)) + " width " + std::to_string(width),
      [=](const auto& in, auto plain) {
        const CellInputs own = cell_of(in, 1, cell);
        return joined(plain ? reference::recurrent(in[0], own.weights, own.state, options)
                            : recurrent(in[0], own.weights, own.state, options));
      },
      inputs);
}

inline std::vector<Case> recurrent_cases(int64_t width, const std::vector<int>& bounds) {
  std::vector<Case> all;
  for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kNormLstm})
    for (const Extra extra : {Extra::kNone, Extra::kZoneout, Extra::kExpectedZoneout,
                              Extra::kRecurrentDropout, Extra::kAll})
      all.push_back(recurrent_case(cell, width, bounds, extra == Extra::kZoneout, extra));
  return all;
}

/// Widths of everything in an attentive layer.
struct Widths {
  int64_t hidden, keys, values;
};

/// `projected`: queries have a weight (and a bias where the score is additive).
inline Case attentive_case(Cell cell, Score score, bool projected, const Widths& widths,
                           const std::vector<int>& bounds, const std::vector<int>& memory,
                           Extra extra = Extra::kNone) {
  using testing::noise;
  const Attentive options{.recurrent = layer(cell, bounds, false, extra), .score = score};
  const int64_t batch = static_cast<int64_t>(bounds.size()) - 1;
  const int64_t keys = projected ? widths.keys : widths.hidden;
  const bool additive = score == Score::kAdditive || score == Score::kNormedAdditive;
  const bool scaled = score == Score::kNormedAdditive || score == Score::kScaledDot;
  testing::Inputs inputs{noise({bounds.back(), gates_of(cell) * widths.hidden}),
                         noise({gates_of(cell) * widths.hidden, widths.values}, 31) /
                             std::sqrt(static_cast<double>(widths.values)),
                         noise({memory.back(), keys}, 32) * 0.3,
                         noise({memory.back(), widths.values}, 33),
                         noise({batch, widths.values}, 34)};
  const size_t optional = inputs.size();
  if (projected) inputs.push_back(noise({keys, widths.hidden}, 35) * 0.3);
  if (projected && additive) inputs.push_back(noise({keys}, 36) * 0.5);
  if (additive) inputs.push_back(noise({keys}, 37));
  if (scaled) inputs.push_back(at::full({1}, 1.3));
  const size_t of_cell = inputs.size();
  for (const at::Tensor& x : cell_inputs(cell, widths.hidden, batch)) inputs.push_back(x);
  return make(
      std::string("attentive ") + name_of(cell) + " score " +
          std::to_string(static_cast<int>(score)) + (projected ? " projected" : "") + " width " +
          std::to_string(widths.hidden),
      [=](const auto& in, auto plain) {
        const CellInputs own = cell_of(in, of_cell, cell);
        size_t next = optional;
        AttentiveWeights weights{.recurrent = own.weights, .context = in[1]};
        if (projected) weights.query = in[next++];
        if (projected && additive) weights.query_bias = in[next++];
        if (additive) weights.score = in[next++];
        if (scaled) weights.gain = in[next++];
        const Memory seen{in[2], in[3], lengths(memory)};
        const AttentiveState state{own.state.h, own.state.c, in[4]};
        const AttentiveOutput out = plain
                                        ? reference::attentive(in[0], weights, seen, state, options)
                                        : attentive(in[0], weights, seen, state, options);
        return at::cat({out.h.flatten(), out.context.flatten()});
      },
      inputs);
}

inline std::vector<Case> attentive_cases(const Widths& widths, const std::vector<int>& bounds,
                                         const std::vector<int>& memory) {
  std::vector<Case> all;
  for (const Score score :
       {Score::kAdditive, Score::kNormedAdditive, Score::kDot, Score::kScaledDot})
    for (const bool projected : {true, false})
      all.push_back(attentive_case(Cell::kLstm, score, projected, widths, bounds, memory));
  for (const Cell cell : {Cell::kGru, Cell::kNormLstm})
    all.push_back(attentive_case(cell, Score::kAdditive, true, widths, bounds, memory));
  for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kNormLstm})
    all.push_back(attentive_case(cell, Score::kDot, true, widths, bounds, memory, Extra::kAll));
  return all;
}

/// An LSTM of 8 units over two sequences of 3 and 2 rows that see memories of 4 and 1 rows.
struct Small {
  int64_t width = 8, keys = 6, values = 5;
  at::Tensor x = testing::noise({5, 32});
  AttentiveWeights weights{.recurrent = {.hidden = testing::noise({32, 8}, 2) * 0.3},
                           .context = testing::noise({32, 5}, 3) * 0.3,
                           .query = testing::noise({6, 8}, 4),
                           .query_bias = testing::noise({6}, 5),
                           .score = testing::noise({6}, 6)};
  Memory memory{testing::noise({5, 6}, 7), testing::noise({5, 5}, 8), lengths({0, 4, 5})};
  Attentive options{.recurrent = layer(Cell::kLstm, {0, 3, 5}, false, Extra::kNone),
                    .score = Score::kAdditive,
                    .wants_weights = true};
};

/// Small enough for finite differences; a sequence and a memory without rows.
inline std::vector<Case> small_recurrent() {
  std::vector<Case> all = recurrent_cases(3, {0, 1, 1, 4, 6});
  for (const Case& one : attentive_cases({3, 4, 2}, {0, 1, 1, 4, 6}, {0, 2, 3, 6, 6}))
    all.push_back(one);
  return all;
}

/// Large enough for panels, tiles, blocks of depth and bundles; one long sequence among short ones.
inline std::vector<Case> large_recurrent() {
  const std::vector<int> bounds{0, 3, 3, 4, 27, 31, 36, 40, 47, 49, 60};
  std::vector<Case> all = recurrent_cases(40, bounds);
  all.push_back(recurrent_case(Cell::kLstm, 160, bounds, false, Extra::kNone));
  all.push_back(recurrent_case(Cell::kGru, 160, bounds, true, Extra::kNone));
  all.push_back(recurrent_case(Cell::kLstm, 33, {0, 1}, false, Extra::kNone));
  all.push_back(recurrent_case(Cell::kGru, 33, {0, 20}, false, Extra::kAll));
  for (const Case& one :
       attentive_cases({40, 51, 70}, bounds, {0, 4, 9, 10, 30, 30, 31, 40, 41, 50, 52}))
    all.push_back(one);
  return all;
}

}  // namespace stretto::kernels::cases
