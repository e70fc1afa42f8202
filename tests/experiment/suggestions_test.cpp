#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "config/load.h"
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
    Slip{"model.encoder.num_kv_head", "model.encoder.num_kv_heads"},
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
    Slip{"data.batch_size", "data.max_samples"},
    Slip{"train.batch_size", "data.max_samples"},
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
    const std::string suggested = config::suggest_key(slip.typed, schema).path;
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

// Options of other toolkits, as a key of the section that people put them into. All must be right:
// each stands behind the key that it leads to.
constexpr std::array kElsewhere{
    // anybody
    Slip{"schedule.type", "schedule.name"},
    Slip{"optim.type", "optim.name"},
    Slip{"model.type", "model.name"},
    Slip{"loss.type", "loss.name"},
    Slip{"data.batch_type", "data.max_tokens"},
    Slip{"model.dim", "model.d_model"},
    Slip{"train.eval_every", "eval.every"},
    Slip{"optim.wd", "optim.weight_decay"},
    Slip{"train.label_smoothing", "loss.label_smoothing"},
    Slip{"train.max_grad_norm", "optim.clip_norm"},
    Slip{"train.gradient_accumulation_steps", "train.update_freq"},
    Slip{"train.loss_scaling", "train.loss_scale.name"},
    // fairseq
    Slip{"optimization.max_update", "train.max_steps"},
    Slip{"optimization.update_freq", "train.update_freq"},
    Slip{"optimization.clip_norm", "optim.clip_norm"},
    Slip{"optimization.stop_min_lr", "schedule.min_lr"},
    Slip{"optimization.stop_time_hours", "train.max_hours"},
    Slip{"dataset.max_tokens", "data.max_tokens"},
    Slip{"dataset.num_workers", "data.prefetch"},
    Slip{"dataset.validate_interval_updates", "eval.every"},
    Slip{"checkpoint.save_interval_updates", "train.save_every"},
    Slip{"checkpoint.keep_interval_updates", "train.keep_last"},
    Slip{"checkpoint.restore_file", "train.init_from"},
    Slip{"checkpoint.best_checkpoint_metric", "eval.best_metric"},
    Slip{"common.fp16", "train.precision"},
    Slip{"common.fp16_init_scale", "train.loss_scale.init"},
    Slip{"common.log_interval", "report.every"},
    Slip{"model.encoder_normalize_before", "model.norm"},
    Slip{"model.share_decoder_input_output_embed", "model.tie_embeddings"},
    Slip{"model.decoder_attention_heads", "model.decoder.num_heads"},
    Slip{"model.encoder_ffn_embed_dim", "model.encoder.ffn_dim"},
    Slip{"model.activation_fn", "model.activation"},
    Slip{"model.relu_dropout", "model.activation_dropout"},
    Slip{"optim.adam_betas", "optim.beta1"},
    Slip{"schedule.total_num_update", "schedule.total_steps"},
    Slip{"generation.max_len_a", "decode.max_len_a"},
    Slip{"generation.sampling_topk", "decode.top_k"},
    Slip{"generation.no_repeat_ngram_size", "decode.no_repeat_ngram"},
    Slip{"distributed_training.ddp_backend", "dist.strategy"},
    // OpenNMT
    Slip{"train.train_steps", "train.max_steps"},
    Slip{"train.valid_steps", "eval.every"},
    Slip{"train.save_checkpoint_steps", "train.save_every"},
    Slip{"train.keep_checkpoint", "train.keep_last"},
    Slip{"train.accum_count", "train.update_freq"},
    Slip{"train.train_from", "train.init_from"},
    Slip{"train.model_dtype", "train.precision"},
    Slip{"optim.decay_method", "schedule.name"},
    Slip{"model.transformer_ff", "model.encoder.ffn_dim"},
    Slip{"model.rnn_size", "model.d_model"},
    Slip{"model.position_encoding", "model.positions"},
    Slip{"data.path_src", "data.train_src"},
    Slip{"data.src_subword_model", "tokenizer.src_model"},
    Slip{"data.src_seq_length", "data.max_src_tokens"},
    Slip{"decode.random_sampling_topp", "decode.top_p"},
    Slip{"decode.block_ngram_repeat", "decode.no_repeat_ngram"},
    // Marian
    Slip{"data.train_sets", "data.train_src"},
    Slip{"data.mini_batch_words", "data.max_tokens"},
    Slip{"data.mini_batch", "data.max_samples"},
    Slip{"tokenizer.dim_vocabs", "tokenizer.vocab_size"},
    Slip{"model.dim_emb", "model.d_model"},
    Slip{"model.enc_depth", "model.encoder.num_layers"},
    Slip{"model.transformer_dim_ffn", "model.encoder.ffn_dim"},
    Slip{"model.tied_embeddings_all", "model.tie_embeddings"},
    Slip{"optim.learn_rate", "optim.lr"},
    Slip{"optim.mini_batch_words_ref", "optim.reference_batch"},
    Slip{"schedule.lr_warmup", "schedule.warmup_steps"},
    Slip{"train.optimizer_delay", "train.update_freq"},
    Slip{"train.after_batches", "train.max_steps"},
    Slip{"train.disp_freq", "report.every"},
    Slip{"train.valid_freq", "eval.every"},
    Slip{"train.valid_metrics", "eval.best_metric"},
    Slip{"train.cost_scaling", "train.loss_scale.name"},
    Slip{"decode.normalize", "decode.length_penalty"},
    Slip{"decode.max_length_factor", "decode.max_len_a"},
    Slip{"run.cpu_threads", "run.threads"},
    // Hugging Face
    Slip{"train.per_device_train_batch_size", "data.max_samples"},
    Slip{"train.per_device_eval_batch_size", "eval.max_samples"},
    Slip{"train.eval_on_start", "eval.at_start"},
    Slip{"train.max_sentences", "data.max_samples"},
    Slip{"train.num_train_epochs", "train.max_epochs"},
    Slip{"train.lr_scheduler_type", "schedule.name"},
    Slip{"train.warmup_ratio", "schedule.warmup_ratio"},
    Slip{"train.label_smoothing_factor", "loss.label_smoothing"},
    Slip{"train.eval_steps", "eval.every"},
    Slip{"train.logging_steps", "report.every"},
    Slip{"train.save_total_limit", "train.keep_last"},
    Slip{"train.metric_for_best_model", "eval.best_metric"},
    Slip{"train.adam_epsilon", "optim.epsilon"},
    Slip{"train.bf16", "train.precision"},
    Slip{"train.dataloader_num_workers", "data.prefetch"},
    Slip{"train.generation_num_beams", "decode.beam_size"},
    Slip{"train.predict_with_generate", "eval.bleu"},
    Slip{"train.ddp_bucket_cap_mb", "dist.bucket_bytes"},
    Slip{"model.num_attention_heads", "model.encoder.num_heads"},
    Slip{"model.intermediate_size", "model.encoder.ffn_dim"},
    Slip{"model.num_decoder_layers", "model.decoder.num_layers"},
    Slip{"model.max_position_embeddings", "model.max_positions"},
    Slip{"model.max_relative_positions", "model.max_distance"},
    Slip{"decode.num_return_sequences", "decode.nbest"},
    Slip{"decode.max_new_tokens", "decode.max_len_b"},
    // Determined
    Slip{"optimizations.aggregation_frequency", "train.update_freq"},
    Slip{"optimizations.mixed_precision", "train.precision"},
    Slip{"optimizations.gradient_compression", "dist.compress"},
    Slip{"optimizations.tensor_fusion_threshold", "dist.bucket_bytes"},
    Slip{"searcher.metric", "eval.best_metric"},
    Slip{"min_validation_period", "eval.every"},
    Slip{"min_checkpoint_period", "train.save_every"},
    Slip{"scheduling_unit", "report.every"},
    Slip{"reproducibility.experiment_seed", "run.seed"},
    Slip{"exponential-smoothing", "train.ema_decay"},
    Slip{"train.store_ema", "train.ema_decay"},
    Slip{"optim.l1_regularization_strength", "optim.l1"},
    Slip{"optim.initial_accumulator_value", "optim.initial_accumulator"},
};

TEST(Suggestions, NamesOfOtherToolkitsLeadToTheirKeys) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  for (const auto& name : kElsewhere) {
    EXPECT_NE(schema.find(name.meant), nullptr) << name.meant;
    EXPECT_EQ(config::suggest_key(name.typed, schema).path, name.meant) << name.typed;
  }
}

// What is typed is compared with them as they are declared.
TEST(Suggestions, NamesAreDeclaredInSmallLettersWithUnderscores) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  std::vector<std::string> names;
  const auto add = [&](const auto& declared) {
    names.push_back(declared.path);
    for (const auto& other : declared.other_names) names.push_back(other.name);
  };
  for (const auto& key : schema.keys) add(key);
  for (const auto& section : schema.sections) add(section);
  for (const auto& name : names) {
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_."), std::string::npos)
        << name;
  }
}

TEST(Suggestions, ANoteSaysWhatIsDifferentHere) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  EXPECT_EQ(config::suggest_key("common.fp16", schema).note, "= \"mixed_fp16\"");
  EXPECT_NE(config::suggest_key("data.batch_type", schema).note.find("counted in tokens"),
            std::string::npos);
  EXPECT_EQ(config::suggest_key("optim.learning_rate", schema).note, "");
}

TEST(Suggestions, OtherNamesAreNoKeysOfOursAndTheirValuesThereAre) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  size_t names = 0, values = 0;
  for (const auto& key : schema.keys) {
    const std::string section = key.path.substr(0, key.path.rfind('.'));
    for (const auto& other : key.other_names) {
      ++names;
      const std::string path = section + "." + other.name;
      const auto* found = schema.find(path);
      EXPECT_TRUE(found == nullptr || found->former_path == path) << other.name;
      if (!other.note.starts_with("= ")) continue;
      const size_t begin = other.note.find('"') + 1;
      const std::string value = other.note.substr(begin, other.note.find('"', begin) - begin);
      const auto& choices = key.range.choices;
      EXPECT_EQ(std::count(choices.begin(), choices.end(), value), 1) << key.path << other.note;
    }
    for (const auto& other : key.other_values) {
      ++values;
      const auto& choices = key.range.choices;
      EXPECT_EQ(std::count(choices.begin(), choices.end(), other.value), 1)
          << key.path << ": " << other.value;
      EXPECT_EQ(std::count(choices.begin(), choices.end(), other.name), 0)
          << key.path << ": " << other.name << " is a value of its own";
    }
  }
  EXPECT_GE(names, 250u);
  EXPECT_GE(values, 100u);
}

/// The hint of the one problem of a file and overrides.
std::string hint_of_all(const std::string& file, const std::vector<std::string>& overrides) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  config::load_text(file, "my.toml", "/nowhere", overrides, experiment_schema(options),
                    experiment_schema(fallback), problems);
  if (problems.size() != 1) return std::to_string(problems.size()) + " problems";
  return problems[0].hint;
}

/// What is said of an override.
std::string hint_of(const std::string& override_text) {
  return hint_of_all("", {override_text});
}

TEST(Suggestions, ValuesOfOtherToolkitsLeadToOurs) {
  for (const auto& [override_text, meant] :
       {std::pair{"run.device=gpu", "cuda"},
        {"run.device=cuda:0", "cuda"},
        {"optim.name=AdamW", "adamw"},
        {"optim.name=adamw_torch", "adamw"},
        {"optim.name=admaw", "adamw"},
        {"train.precision=bf16", "mixed_bf16"},
        {"train.precision=bfloat16", "mixed_bf16"},
        {"train.precision=fp16", "mixed_fp16"},
        {"train.precision=16", "mixed_fp16"},
        {"train.precision=Mixed-BF16", "mixed_bf16"},
        {"train.precision=float32", "fp32"},
        {"schedule.name=inverse_square_root", "inverse_sqrt"},
        {"schedule.name=reduce_lr_on_plateau", "plateau"},
        {"schedule.name=cosin", "cosine"},
        {"loss.name=label_smoothed_cross_entropy", "cross_entropy"},
        {"model.name=transformer_wmt_en_de", "encoder_decoder"},
        {"model.encoder.name=rnn", "lstm"},
        {"model.encoder.name=GRU", "lstm"},
        {"model.encoder.name=gnmt", "lstm"},
        {"model.encoder.name=lightconv", "light_conv"},
        {"model.decoder.name=ConvS2S", "conv"},
        {"model.decoder.name=fconv", "conv"},
        {"model.decoder.name=nematus", "lstm"},
        {"model.norm=prenorm", "pre"},
        {"model.positions=RoPE", "rotary"},
        {"model.positions=ALiBi", "alibi"},
        {"model.positions=relative_bias", "t5"},
        {"model.positions=relative_key", "shaw"},
        {"model.tie_embeddings=true", "all"},
        {"tokenizer.type=spm", "sentencepiece"},
        {"tokenizer.type=whitespace", "vocab"},
        {"dist.strategy=ddp", "all_reduce"},
        {"dist.backend=gloo", "mpi"},
        {"decode.method=greedy", "beam"},
        {"decode.length_penalty_type=wu", "gnmt"},
        {"data.too_long=drop", "skip"}}) {
    EXPECT_TRUE(hint_of(override_text).starts_with("did you mean \"" + std::string(meant) + "\"?"))
        << override_text << ": " << hint_of(override_text);
  }
  EXPECT_EQ(hint_of("run.device=quantum").find("did you mean"), std::string::npos)
      << hint_of("run.device=quantum");
}

// A preset has the sizes of a published model, and not its weights.
TEST(Suggestions, APublishedModelIsItsFolder) {
  const std::string task = "[task]\nname = \"text_classification\"\n[model]\n";
  for (const char* line : {"name = \"bert-base-uncased\"", "model_name_or_path = \"roberta-base\"",
                           "preset = \"bert-base-uncased\"", "preset = \"bert-large-cased\""}) {
    const auto hint = hint_of_all(task + line + "\n", {});
    EXPECT_NE(hint.find("train.init_from"), std::string::npos) << line << ": " << hint;
    EXPECT_EQ(hint.find("stretto import"), std::string::npos) << line << ": " << hint;
  }
}

TEST(Suggestions, OfTheStepBetweenWindowsItIsSaidThatItIsNoOverlap) {
  EXPECT_EQ(
      hint_of_all("[task]\nname = \"question_answering\"\n[data]\ndoc_stride = 128\n", {}),
      "did you mean `data.stride`? it is the step between windows; doc_stride of run_qa.py is "
      "what they share (integer, default 128, in tokens)");
}

TEST(Suggestions, WhatIsNoNumberIsToldSo) {
  for (const auto& [override_text, start] :
       {std::pair{"optim.lr=1e-3e", "\"1e-3e\" is not a number; "},
        {"optim.lr=.5", "write 0.5; "},
        {"optim.lr='\"0.5\"'", "\"\"0.5\"\" is not a number; "},
        {"optim.lr='0.5'", "leave the quotes out; "},
        {"train.max_steps=100k", "write 100000; "},
        {"train.max_steps=1,000", "write 1000; "},
        {"train.max_steps=12,345,678", "write 12345678; "},
        {"optim.lr=0,001", "write 0.001; "},
        {"optim.lr=1,5", "write 1.5; "},
        {"optim.lr=1,2,3", "\"1,2,3\" is not a number; "},
        {"train.max_steps=1e5", "write 100000; "},
        {"train.max_steps=lots", "\"lots\" is not a whole number; "},
        {"train.max_steps=99999999999999999999",
         "\"99999999999999999999\" is not a whole number; "},
        {"eval.bleu=yes", "write true; "},
        {"eval.bleu=1", "write true; "},
        {"eval.bleu='false'", "leave the quotes out; "}}) {
    EXPECT_TRUE(hint_of(override_text).starts_with(start))
        << override_text << ": " << hint_of(override_text);
  }
}

TEST(Suggestions, NamesOfPartsAreKnownInEntriesOfListsToo) {
  for (const char* blocks : {"[[model.encoders]]\nname = \"rnn\"\n[[model.encoders]]\n",
                             "[[model.heads]]\n[model.heads.decoder]\nname = \"rnn\"\n"}) {
    EXPECT_TRUE(hint_of_all(blocks, {}).starts_with("did you mean \"lstm\"?")) << blocks;
  }
  EXPECT_TRUE(
      hint_of("model.encoder.name=gru").starts_with("did you mean \"lstm\"? with cell = \"gru\""));
}

// Another task has a key of this name in [model] itself.
TEST(Suggestions, AKeyOfTheTasksOwnPartsIsOfferedBeforeAnotherTask) {
  EXPECT_EQ(hint_of("model.num_layers=3"),
            "did you mean `model.encoder.num_layers` or `model.decoder.num_layers`? (integer, "
            "default 6) Otherwise set task.name = \"masked_lm\"");
  EXPECT_EQ(
      hint_of_all("[model]\nnum_heads = 4\n[model.encoder]\nname = \"lstm\"\n", {}),
      "did you mean `model.decoder.num_heads`? (integer, default 8) Otherwise set task.name = "
      "\"masked_lm\"");
  EXPECT_EQ(hint_of_all("[model]\nnum_layers = 4\n[model.encoder]\nname = \"lstm\"\n", {}),
            "did you mean `model.encoder.num_layers` or `model.decoder.num_layers`? Otherwise set "
            "task.name = \"masked_lm\"")
      << "their defaults differ";
  EXPECT_TRUE(hint_of("model.pooling=mean").starts_with("leave it out, or set task.name = "));
}

TEST(Suggestions, TheHiddenSizeOfAnLstmIsThatOfItsSection) {
  for (const char* name : {"hidden_size", "rnn_size"}) {
    const std::string override_text = std::string("model.encoder.") + name + "=64";
    EXPECT_TRUE(hint_of_all("[model.encoder]\nname = \"lstm\"\n", {override_text})
                    .starts_with("did you mean `model.encoder.hidden_dim`?"))
        << name;
    EXPECT_TRUE(hint_of(override_text).starts_with("did you mean `model.d_model`?")) << name;
  }
}

TEST(Suggestions, QuotesAreSuggestedWhereAnyTextWillDo) {
  const std::string name = hint_of_all("[run]\nname = 5\n", {});
  EXPECT_TRUE(name.starts_with("put it in quotes; ")) << name;
  // Another key is meant, and "4000" would be no better.
  for (const std::string& hint :
       {hint_of_all("[schedule]\nwarmup = 4000\n", {}), hint_of("schedule.warmup=4000")}) {
    EXPECT_EQ(hint.find("quotes"), std::string::npos) << hint;
    EXPECT_NE(hint.find("warmup_steps"), std::string::npos) << hint;
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
  EXPECT_EQ(config::suggest_key("zebra.crossing", schema).path, "");
  EXPECT_EQ(config::suggest_section("zebra", schema), "");
  EXPECT_EQ(config::suggest_key(std::string(100'000, 'a'), schema).path, "");
  EXPECT_EQ(config::suggest_key("", schema).path, "");
}

}  // namespace
}  // namespace stretto::experiment
