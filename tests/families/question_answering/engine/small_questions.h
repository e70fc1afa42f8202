#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "data/squad/question_windows.h"
#include "models/text_model.h"
#include "tests/data/squad/span_tokenizer.h"

namespace stretto::testing {

/// Questions on paragraphs of different lengths; the third one is impossible.
inline data::SquadData small_questions() {
  data::SquadData data;
  data.paragraphs = {
      {.text = "Änna lives in Oslo. The cat lives in a small house near the sea.", .title = ""},
      {.text = "In Oslo lives Anna.", .title = ""}};
  data.questions = {
      {.id = "a", .text = "Who lives in Oslo?", .paragraph = 0, .answers = {{"Änna", 0}}},
      {.id = "b", .text = "Where is the house?", .paragraph = 0, .answers = {{"near the sea", 51}}},
      {.id = "c",
       .text = "Who lives at sea?",
       .paragraph = 1,
       .answers = {},
       .is_impossible = true},
      {.id = "d", .text = "Who?", .paragraph = 1, .answers = {{"Anna", 14}, {"Oslo", 3}}}};
  return data;
}

inline std::shared_ptr<data::QuestionWindows> small_windows(const data::WindowOptions& options = {
                                                                .max_tokens = 32,
                                                                .stride = 8,
                                                                .max_question_tokens = 16}) {
  return std::make_shared<data::QuestionWindows>(small_questions(), *small_tokenizer(), options);
}

/// A model that knows nothing, with scores far from each other.
inline std::shared_ptr<models::TextModel> span_model(uint64_t seed = 3) {
  models::BertOptions options;
  options.preset = "none";
  options.num_layers = 1;
  options.d_model = 16;
  options.num_heads = 2;
  options.ffn_dim = 24;
  options.max_positions = 64;
  auto model = models::make_text_model({.model = options,
                                        .rows = small_tokenizer()->size(),
                                        .pad = 0,
                                        .head = models::TextHeadKind::kSpans,
                                        .seed = seed});
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.mul_(20);
  model->eval();
  return model;
}

}  // namespace stretto::testing
