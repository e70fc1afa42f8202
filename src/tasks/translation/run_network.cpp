#include "tasks/translation/run_network.h"

#include "tasks/translation/translation.h"

namespace stretto::tasks {

std::shared_ptr<torch::nn::Module> make_seq2seq_network(const experiment::Experiment& experiment,
                                                        const Assets& assets, bool draws_weights) {
  auto tokenizers = text::load_tokenizers(translation_of(experiment).tokenizer, assets);
  return make_translation_model(experiment, std::move(tokenizers),
                                draws_weights ? at::kCPU : at::kMeta,
                                draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset)
      .model;
}

}  // namespace stretto::tasks
