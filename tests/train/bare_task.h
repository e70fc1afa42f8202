#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "train/task.h"

namespace stretto::test {

/// A task without data, validation and files, with one loss for each target token: tests add the
/// model, the loss and what else they need.
class BareTask : public train::Task {
 public:
  const data::BatchSource& train_batches() override { return nothing_; }
  bool can_validate() const override { return false; }
  train::Validation validate() override { return {}; }
  std::map<std::string, std::string> assets() const override { return {}; }
  std::vector<std::string> counters() const override { return {"target tokens", "source tokens"}; }
  std::vector<double> weights(const data::Batch& batch) const override {
    return {static_cast<double>(data::target(batch).num_rows())};
  }

 protected:
  static train::Sums sums(const at::Tensor& loss, const data::Batch& batch) {
    return {.losses = {loss},
            .counts = {data::target(batch).num_rows(), data::source(batch).num_rows()}};
  }

 private:
  class Nothing : public data::BatchSource {
   public:
    int64_t num_batches() const override { return 0; }
    data::Batch load(int64_t, int64_t) const override { return {}; }
  };
  Nothing nothing_;
};

/// A Transformer with dropout, of so many layers a side; both vocabularies have `vocabulary`
/// entries.
inline std::shared_ptr<models::Seq2SeqModel> small_transformer(
    int64_t layers, int64_t vocabulary, const std::string& tie_embeddings = "decoder") {
  models::Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = models::StackOptions{.num_layers = layers, .num_heads = 2, .ffn_dim = 24};
  options.decoder = models::StackOptions{.num_layers = layers, .num_heads = 2, .ffn_dim = 24};
  options.norm = "pre";
  options.tie_embeddings = tie_embeddings;
  options.dropout = 0.1;
  return models::make_model(
      options,
      {.src_rows = vocabulary, .tgt_rows = vocabulary, .num_tgt_classes = vocabulary, .seed = 3},
      losses::make_loss({}));
}

}  // namespace stretto::test
