#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "tests/text/special_ids.h"
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

/// A stack of small_transformer().
inline models::StackOptions small_stack(int64_t layers) {
  return {.num_layers = layers, .num_heads = 2, .ffn_dim = 24};
}

/// What small_transformer() is made of, with so many layers a side.
inline models::Seq2SeqOptions small_options(int64_t layers) {
  models::Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = small_stack(layers);
  options.decoder = small_stack(layers);
  options.norm = "pre";
  options.dropout = 0.1;
  return options;
}

/// A Transformer with dropout; both vocabularies have `vocabulary` entries.
inline std::shared_ptr<models::Seq2SeqModel> small_transformer(
    const models::Seq2SeqOptions& options, int64_t vocabulary) {
  return models::make_model(options,
                            {.src_rows = vocabulary,
                             .tgt_rows = vocabulary,
                             .num_tgt_classes = vocabulary,
                             .src_specials = stretto::testing::kSpecials,
                             .tgt_specials = stretto::testing::kSpecials,
                             .seed = 3},
                            losses::make_loss({}));
}

/// A Transformer with so many layers a side.
inline std::shared_ptr<models::Seq2SeqModel> small_transformer(
    int64_t layers, int64_t vocabulary, const std::string& tie_embeddings = "decoder") {
  auto options = small_options(layers);
  options.tie_embeddings = tie_embeddings;
  return small_transformer(options, vocabulary);
}

}  // namespace stretto::test
