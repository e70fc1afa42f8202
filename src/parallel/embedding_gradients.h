#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <span>
#include <vector>

#include "distributed/process_group.h"
#include "nn/embedding.h"
#include "optim/arena.h"

namespace stretto::parallel {

/// Gradients of looked-up rows of tables that are output projections too, on a way of their own.
///
/// The dense part of such a table's gradient is there when backward begins, that of its lookups
/// when it ends; summed as one tensor, the largest of all would be sent last, when nothing is left
/// to hide it. Here the dense part leaves as soon as it is ready, and the few rows of the batch
/// follow: each process sends those it looked up, and adds those of all, in order of rank.
///
/// Rows go straight into the arena until `keep(true)`; afterwards they are kept for the exchange.
/// What may lack memory stands before it (`prepare`): other processes wait in the exchange.
class EmbeddingGradients {
 public:
  /// Takes over the lookups of every nn::Embedding of `model` whose table lies in the arena.
  EmbeddingGradients(optim::Arena& arena, distributed::ProcessGroup group,
                     const torch::nn::Module& model);
  ~EmbeddingGradients();
  EmbeddingGradients(const EmbeddingGradients&) = delete;
  EmbeddingGradients& operator=(const EmbeddingGradients&) = delete;

  bool empty() const { return tables_.empty(); }
  /// Tables that got nothing but rows go back to dense gradients, as their dense part has nothing
  /// to hide behind. @param times  accumulations by slot. @return whether there were any
  bool leave_tables_without(std::span<const int64_t> times);

  /// A new update; what an earlier one kept is forgotten.
  void begin();
  void keep(bool wanted);
  /// The dense gradient of this slot, complete and still this process's own: remembers what
  /// `added_squares` needs.
  void remember(size_t slot);
  /// Sums the kept rows of each id.
  void prepare();

  /// Brings the prepared rows of all processes here, as far as there is room for them. Collective.
  void exchange();
  /// Adds the rows of all processes to the arena, and brings those that there was no room for.
  /// Collective.
  void apply();

  /// By how much this process's rows change the sum of squares of its own gradient, for the slots
  /// that were remembered.
  double added_squares() const { return added_squares_; }
  int64_t bytes() const { return bytes_; }  ///< of this process's rows and ids in the last exchange

 private:
  class Table;
  std::vector<std::shared_ptr<Table>> tables_;
  std::vector<std::shared_ptr<nn::EmbeddingImpl>> modules_;  // as tables_
  optim::Arena& arena_;
  distributed::ProcessGroup group_;
  double added_squares_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace stretto::parallel
