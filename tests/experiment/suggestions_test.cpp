#include <gtest/gtest.h>

#include <array>

#include "config/suggest.h"
#include "experiment/experiment_schema.h"

namespace stretto::experiment {
namespace {

struct Slip {
  const char* typed;
  const char* meant;
};

// Slips of the fingers, of memory, and of people who come from another toolkit.
constexpr std::array kSlips{
    // letters left out, doubled, swapped, wrong
    Slip{"schedule.warmup_step", "schedule.warmup_steps"},
    Slip{"schedule.warmpu_steps", "schedule.warmup_steps"},
    Slip{"schedule.warm_up_steps", "schedule.warmup_steps"},
    Slip{"schedule.warmupsteps", "schedule.warmup_steps"},
    Slip{"schedule.total_step", "schedule.total_steps"},
    Slip{"schedule.nmae", "schedule.name"},
    Slip{"schedule.min_rl", "schedule.min_lr"},
    Slip{"schedule.pwoer", "schedule.power"},
    Slip{"optim.lrr", "optim.lr"},
    Slip{"optim.beta", "optim.beta1"},
    Slip{"optim.bta2", "optim.beta2"},
    Slip{"optim.weigth_decay", "optim.weight_decay"},
    Slip{"optim.wieght_decay", "optim.weight_decay"},
    Slip{"optim.epsilom", "optim.epsilon"},
    Slip{"optim.momentun", "optim.momentum"},
    Slip{"optim.clip_nrom", "optim.clip_norm"},
    Slip{"optim.nestrov", "optim.nesterov"},
    Slip{"train.max_step", "train.max_steps"},
    Slip{"train.maxsteps", "train.max_steps"},
    Slip{"train.max_stpes", "train.max_steps"},
    Slip{"train.max_epoch", "train.max_epochs"},
    Slip{"train.max_hour", "train.max_hours"},
    Slip{"train.patients", "train.patience"},
    Slip{"train.pateince", "train.patience"},
    Slip{"train.update_frequency", "train.update_freq"},
    Slip{"train.precison", "train.precision"},
    Slip{"train.save_evry", "train.save_every"},
    Slip{"train.kep_last", "train.keep_last"},
    Slip{"train.average_lst", "train.average_last"},
    Slip{"model.d_modle", "model.d_model"},
    Slip{"model.dmodel", "model.d_model"},
    Slip{"model.dropuot", "model.dropout"},
    Slip{"model.attention_drop", "model.attention_dropout"},
    Slip{"model.tie_embedings", "model.tie_embeddings"},
    Slip{"model.position", "model.positions"},
    Slip{"model.activaton", "model.activation"},
    Slip{"model.encoder.num_layer", "model.encoder.num_layers"},
    Slip{"model.encoder.nheads", "model.encoder.num_heads"},
    Slip{"model.decoder.ffn_dims", "model.decoder.ffn_dim"},
    Slip{"data.train_scr", "data.train_src"},
    Slip{"data.train_trg", "data.train_tgt"},
    Slip{"data.valid_scr", "data.valid_src"},
    Slip{"data.max_token", "data.max_tokens"},
    Slip{"data.max_src_token", "data.max_src_tokens"},
    Slip{"data.prefech", "data.prefetch"},
    Slip{"data.cachedir", "data.cache_dir"},
    Slip{"data.invalid_utf_8", "data.invalid_utf8"},
    Slip{"tokenizer.vocabsize", "tokenizer.vocab_size"},
    Slip{"tokenizer.vocab_sise", "tokenizer.vocab_size"},
    Slip{"tokenizer.algoritm", "tokenizer.algorithm"},
    Slip{"loss.label_smooting", "loss.label_smoothing"},
    Slip{"decode.beamsize", "decode.beam_size"},
    Slip{"decode.lenght_penalty", "decode.length_penalty"},
    Slip{"decode.temprature", "decode.temperature"},
    Slip{"decode.n_best", "decode.nbest"},
    Slip{"decode.topk", "decode.top_k"},
    Slip{"eval.evry", "eval.every"},
    Slip{"eval.best_metrics", "eval.best_metric"},
    Slip{"report.tensorbord", "report.tensorboard"},
    Slip{"run.sed", "run.seed"},
    Slip{"run.treads", "run.threads"},
    // case, hyphens, order of words, words left out
    Slip{"optim.weight-decay", "optim.weight_decay"},
    Slip{"train.maxSteps", "train.max_steps"},
    Slip{"Train.Max_Steps", "train.max_steps"},
    Slip{"schedule.steps_warmup", "schedule.warmup_steps"},
    Slip{"loss.smoothing", "loss.label_smoothing"},
    Slip{"optim.decay", "optim.weight_decay"},
    Slip{"decode.beam", "decode.beam_size"},
    Slip{"tokenizer.coverage", "tokenizer.character_coverage"},
    // the right name in the wrong section, or in none, or with a mistyped section
    Slip{"train.warmup_steps", "schedule.warmup_steps"},
    Slip{"train.lr", "optim.lr"},
    Slip{"train.seed", "run.seed"},
    Slip{"train.label_smoothing", "loss.label_smoothing"},
    Slip{"train.max_tokens", "data.max_tokens"},
    Slip{"train.clip_norm", "optim.clip_norm"},
    Slip{"eval.beam_size", "decode.beam_size"},
    Slip{"model.vocab_size", "tokenizer.vocab_size"},
    Slip{"model.num_heads", "model.encoder.num_heads"},
    Slip{"model.num_layers", "model.encoder.num_layers"},
    Slip{"data.vocab_size", "tokenizer.vocab_size"},
    Slip{"lr", "optim.lr"},
    Slip{"max_steps", "train.max_steps"},
    Slip{"optimizer.lr", "optim.lr"},
    Slip{"optmi.beta1", "optim.beta1"},
    Slip{"scheduler.warmup_steps", "schedule.warmup_steps"},
    Slip{"training.max_steps", "train.max_steps"},
    Slip{"modle.d_model", "model.d_model"},
    Slip{"model.encodr.num_heads", "model.encoder.num_heads"},
    Slip{"decoding.beam_size", "decode.beam_size"},
    // names of other toolkits
    Slip{"optim.learning_rate", "optim.lr"},
    Slip{"train.learning_rate", "optim.lr"},
    Slip{"train.epochs", "train.max_epochs"},
    Slip{"data.batch_size", "data.max_tokens"},
    Slip{"train.batch_size", "data.max_tokens"},
    Slip{"train.gradient_accumulation_steps", "train.update_freq"},
    Slip{"train.max_update", "train.max_steps"},
    Slip{"train.optimizer", "optim.name"},
    Slip{"model.encoder.layers", "model.encoder.num_layers"},
    Slip{"model.decoder.layers", "model.decoder.num_layers"},
    Slip{"model.hidden_size", "model.d_model"},
    Slip{"model.encoder_embed_dim", "model.d_model"},
    Slip{"optim.clip_grad_norm", "optim.clip_norm"},
    Slip{"schedule.warmup_updates", "schedule.warmup_steps"},
    Slip{"decode.lenpen", "decode.length_penalty"},
    Slip{"train.early_stopping", "train.patience"},
    Slip{"report.log_interval", "report.every"},
};

TEST(Suggestions, NineInTenSlipsGetTheRightKeyFirst) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  size_t right = 0;
  std::string wrong;
  for (const auto& slip : kSlips) {
    const std::string suggested = config::suggest_key(slip.typed, schema);
    if (suggested == slip.meant) {
      ++right;
    } else {
      wrong += std::string("\n  ") + slip.typed + " -> " + suggested + ", meant " + slip.meant;
    }
  }
  static_assert(kSlips.size() >= 60);
  EXPECT_GE(right * 10, kSlips.size() * 9) << right << " of " << kSlips.size() << wrong;
  RecordProperty("right", std::to_string(right));
}

TEST(Suggestions, EveryMeantKeyExists) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  for (const auto& slip : kSlips) {
    EXPECT_NE(schema.find(slip.meant), nullptr) << slip.meant;
    EXPECT_EQ(schema.find(slip.typed), nullptr) << slip.typed << " is no slip";
  }
}

TEST(Suggestions, OtherNamesLeadToKeysAndSectionsThatExist) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  for (const auto& [name, ours] : schema.other_names) {
    EXPECT_TRUE(schema.find(ours) != nullptr || schema.find_section(ours) != nullptr) << ours;
    EXPECT_EQ(schema.find(name), nullptr) << name << " is a key of ours";
  }
}

TEST(Suggestions, SectionsAreSuggestedToo) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  for (const auto& [typed, meant] : {std::pair{"modle", "model"},
                                     {"optimizer", "optim"},
                                     {"training", "train"},
                                     {"decoding", "decode"},
                                     {"validation", "eval"},
                                     {"encoder", "model.encoder"},
                                     {"Data", "data"},
                                     {"scheduler", "schedule"},
                                     {"tokeniser", "tokenizer"}}) {
    EXPECT_EQ(config::suggest_section(typed, schema), meant) << typed;
  }
}

TEST(Suggestions, NonsenseGetsNone) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  EXPECT_EQ(config::suggest_key("zebra.crossing", schema), "");
  EXPECT_EQ(config::suggest_section("zebra", schema), "");
  EXPECT_EQ(config::suggest_key(std::string(100'000, 'a'), schema), "");
  EXPECT_EQ(config::suggest_key("", schema), "");
}

}  // namespace
}  // namespace stretto::experiment
