#include "families/speech_recognition/engine/label_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/batch.h"
#include "decoding/token_chain.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "models/packed.h"
#include "runs/run_folder.h"
#include "tasks/load_checkpoints.h"
#include "tasks/registry.h"

namespace stretto::tasks {
namespace {

constexpr float kImpossible = -30;  // of a label for which there is no token at all

uint64_t child_key(uint32_t state, int32_t token) {
  return uint64_t{state} << 32 | static_cast<uint32_t>(token);
}

// Special tokens of both match by their kind, and say nothing of the texts.
int64_t count_matches(const text::Tokenizer& labels, const std::vector<int64_t>& ids) {
  const auto specials = labels.specials();
  int64_t count = 0;
  for (int64_t id = 0; id < std::ssize(ids); ++id) {
    const bool is_special = id == specials.pad || id == specials.unk || id == specials.bos ||
                            id == specials.eos || id == specials.mask;
    count += !is_special && ids[static_cast<size_t>(id)] >= 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

class LabelModel::Scorer final : public decoding::TokenScorer {
 public:
  explicit Scorer(const LabelModel& owner) : owner_(owner) {}

  uint32_t start() override {
    states_.push_back({.text = behind(nullptr, owner_.tokens_.begin)});
    return static_cast<uint32_t>(states_.size() - 1);
  }

  void score(std::span<const decoding::TokenQuery> queries,
             std::span<decoding::TokenScore> scores) override {
    std::vector<uint32_t> wanted;
    for (const auto& query : queries) wanted.push_back(query.state);
    read(std::move(wanted));
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto& query = queries[i];
      scores[i] = {.log_prob = log_prob(query.state, token_of(query.token)),
                   .next = next(query.state, query.token)};
    }
  }

  float end(uint32_t state) override {
    read({state});
    return log_prob(state, owner_.tokens_.end);
  }

  void keep(std::span<uint32_t> states) override {
    std::vector<State> kept;
    std::unordered_map<uint32_t, uint32_t> numbers;
    for (uint32_t& state : states) {
      const auto [place, is_new] = numbers.emplace(state, static_cast<uint32_t>(kept.size()));
      if (is_new) kept.push_back(std::move(states_[state]));
      state = place->second;
    }
    states_ = std::move(kept);
    children_.clear();
  }

  size_t num_states() const override { return states_.size(); }

 private:
  using Text = decoding::TokenChain;
  struct State {
    Text::Pointer text = {};
    std::vector<float> log_probs = {};  ///< of what comes behind it; empty = not asked for yet
  };

  static Text::Pointer behind(Text::Pointer before, int64_t token) {
    return std::make_shared<Text>(std::move(before), token);
  }

  // The last tokens of a text, as many as the model reads.
  std::vector<int64_t> history_of(const Text* text) const {
    std::vector<int64_t> tokens;
    for (; text != nullptr && std::ssize(tokens) < owner_.longest_; text = text->before.get()) {
      tokens.push_back(text->token);
    }
    std::ranges::reverse(tokens);
    return tokens;
  }

  // -1: there is none.
  int64_t token_of(int32_t label) const {
    const auto& tokens = owner_.tokens_;
    const int64_t id = label < 0 ? -1 : tokens.ids.at(static_cast<size_t>(label));
    return id < 0 ? tokens.unknown : id;
  }

  float log_prob(uint32_t state, int64_t token) const {
    return token < 0 ? kImpossible : states_[state].log_probs.at(static_cast<size_t>(token));
  }

  uint32_t next(uint32_t state, int32_t label) {
    const auto number = static_cast<uint32_t>(states_.size());
    const auto [place, is_new] = children_.emplace(child_key(state, label), number);
    if (!is_new) return place->second;
    const int64_t token = token_of(label);
    auto text = states_[state].text;
    states_.push_back({.text = token < 0 ? text : behind(text, token)});
    return number;
  }

  // Fills log_probs of these states.
  void read(std::vector<uint32_t> wanted) {
    std::ranges::sort(wanted);
    wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
    std::erase_if(wanted, [&](uint32_t state) { return !states_[state].log_probs.empty(); });
    if (wanted.empty()) return;
    data::PackedTokens texts;
    for (const uint32_t state : wanted) texts.append(history_of(states_[state].text.get()));
    const torch::NoGradGuard no_grad;
    auto& model = *owner_.model_;
    const auto rows = models::pack(texts, nullptr, model.device());
    const auto pass = model.forward(rows, {}, {});
    const at::Tensor log_probs = model.head()
                                     .log_probs(models::last_rows(pass.rows, rows.offsets))
                                     .to(at::kCPU, at::kFloat)
                                     .contiguous();
    const int64_t width = log_probs.size(1);
    const float* row = log_probs.const_data_ptr<float>();
    for (const uint32_t state : wanted) {
      states_[state].log_probs.assign(row, row + width);
      row += width;
    }
  }

  const LabelModel& owner_;
  std::vector<State> states_;
  std::unordered_map<uint64_t, uint32_t> children_;  ///< by state and label
};

LabelModel::LabelModel(std::shared_ptr<models::CausalModel> model, Tokens tokens)
    : model_(std::move(model)),
      tokens_(std::move(tokens)),
      longest_(std::min(kLongestHistory, model_->max_length())) {}

std::unique_ptr<decoding::TokenScorer> LabelModel::scorer() const {
  return std::make_unique<Scorer>(*this);
}

std::shared_ptr<const LabelModel> open_label_model(const std::string& run,
                                                   const text::Tokenizer& labels,
                                                   at::Device device) {
  const auto folder = runs::RunFolder::open(run);
  const auto loaded = experiment::load_stored_experiment(
      experiment::read_run_config(run), (folder.directory() / "config.toml").string(), {});
  const Assets assets = assets_of(folder);
  std::shared_ptr<models::CausalModel> model;
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    model = std::dynamic_pointer_cast<models::CausalModel>(
        family_of(described).make_network(described, assets, /*draws_weights=*/true));
    if (model != nullptr) return *model;
    throw Error(ExitCode::kUsage,
                "decode.lm_run: " + run + " is a run of " + described.task.name() +
                    ", and no language model",
                "name a run of task.name = \"language_model\" over the same characters");
  };
  load_checkpoints(loaded.options, folder, "", assets, {.make = make});
  model->to(device);
  const auto theirs = text::load_tokenizers({}, assets).src;
  const auto specials = theirs->specials();
  LabelModel::Tokens tokens{.ids = text::match_pieces(labels, *theirs),
                            .begin = specials.eos,
                            .end = specials.eos,
                            .unknown = specials.unk};
  const int64_t matched = count_matches(labels, tokens.ids);
  if (matched == 0 || specials.eos < 0) {
    throw Error(ExitCode::kUsage,
                "decode.lm_run: the language model of " + run + " knows none of the recogniser's " +
                    "tokens",
                "train one with the recogniser's tokenizer: tokenizer.model names its file in the "
                "run folder");
  }
  log::info("decode.lm_run: " + run + " knows " + counted(matched, "token") + " of " +
            with_thousands(labels.size()));
  return std::make_shared<const LabelModel>(std::move(model), std::move(tokens));
}

}  // namespace stretto::tasks
