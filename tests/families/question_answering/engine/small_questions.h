#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "data/squad/question_windows.h"
#include "families/question_answering/question_data.h"
#include "models/text_model.h"
#include "tests/base/temp_dir.h"
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

/// Questions on the same paragraphs, as a file has them.
inline constexpr const char* kSmallQuestions = R"({"data": [{"paragraphs": [
  {"context": "Änna lives in Oslo. The cat lives in a small house near the sea.", "qas": [
    {"id": "a", "question": "Who lives in Oslo?", "answers": [{"text": "Änna", "answer_start": 0}]},
    {"id": "b", "question": "Where?", "answers": [{"text": "near the sea", "answer_start": 51}]}]},
  {"context": "In Oslo lives Anna.", "qas": [
    {"id": "c", "question": "Who lives at sea?", "answers": [], "is_impossible": true},
    {"id": "d", "question": "Who?", "answers": [{"text": "Anna", "answer_start": 14}]}]}]}]})";

/// An experiment on that file, with a small model.
inline experiment::Experiment small_experiment(const TempDir& folder) {
  experiment::Experiment e;
  e.task.select("question_answering");
  e.run = {.seed = 3, .threads = 1, .device = "cpu"};
  auto& options = experiment::questions_of(e);
  options.data.train = options.data.valid = {folder.write("data.json", kSmallQuestions)};
  options.data.cache_dir = (folder / "cache").string();
  options.data.max_text_tokens = 40;
  options.data.max_question_tokens = 24;
  options.data.stride = 8;
  options.tokenizer.model = folder.write("vocab.txt", small_vocabulary());
  options.model.preset = "none";
  options.model.num_layers = 1;
  options.model.d_model = 16;
  options.model.num_heads = 2;
  options.model.ffn_dim = 24;
  options.model.max_positions = 64;
  return e;
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
